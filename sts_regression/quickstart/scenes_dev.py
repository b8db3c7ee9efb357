"""Hand-written scenes for the dev pairs (topics that the other splits do not use); see `make_pairs.parse_scenes`."""

DEV_SCENES = """
# hospital

5 A nurse is {checking|measuring} the blood pressure of a patient in a wheelchair.
5 The blood pressure of a patient in a wheelchair is being measured by a nurse.
5 A patient who sits in a wheelchair is having a blood pressure reading taken by a nurse.
5 In the photo, a nurse takes the blood pressure of a patient {sitting|seated} in a wheelchair.
4 A nurse in a blue uniform is checking the blood pressure of a patient in a wheelchair.
4 A nurse is checking the blood pressure of an elderly patient in a wheelchair.
3 A nurse is checking the eyesight of a patient in a wheelchair.
3 A patient in a wheelchair is checking the blood pressure of a nurse.
3 A nurse is checking the blood pressure of a newborn baby.
2 A nurse pushes a patient in a wheelchair into the garden.
2 A patient with high blood pressure should eat less salt.
1 An ambulance crew lifts an injured cyclist onto a stretcher.

5 The surgeons {removed|took out} the tumour in an operation that lasted nine hours.
5 In a nine-hour operation, the tumour was {removed|taken out} by surgeons.
5 It took the surgeons nine hours to operate and remove the tumour.
5 After nine hours of surgery, the doctors had got the tumour out.
4 The surgeons removed the small tumour in an operation that lasted nine hours.
4 On Monday, the surgeons removed the tumour in an operation that lasted about nine hours.
3 The surgeons removed the tumour in an operation that lasted nine minutes.
3 The surgeons could not remove the tumour in an operation that lasted nine hours.
3 The surgeons removed the kidney in an operation that lasted nine hours.
2 The surgeons explained the risks of the operation to the family.
2 Scientists found out how the tumour feeds on sugar.
1 A new vaccine protects infants against a common virus.

5 Visitors are not {allowed|permitted} on the children's ward after eight in the evening.
5 After 8 p.m., no visitors may {enter|be on} the children's ward.
5 The children's ward is closed to visitors from eight in the evening.
5 You cannot visit patients on the children's ward once it is past eight at night.
4 Visitors are usually not allowed on the children's ward after eight in the evening.
4 Visitors are not allowed on the children's ward after half past eight in the evening.
3 Visitors are allowed on the children's ward after eight in the evening.
3 Visitors are not allowed on the children's ward before eight in the evening.
3 Dogs are not allowed on the children's ward after eight in the evening.
2 Visitors brought toys and books to the children's ward.
2 Lights are switched off on the children's ward at eight.
1 The waiting room of the eye clinic has been repainted.

5 Can I {move|shift} my knee appointment from Tuesday to next week?
5 I'd like to {postpone|put off} Tuesday's appointment for my knee until next week.
5 Would it be possible for me to come in about my knee next week rather than on Tuesday?
5 Instead of Tuesday, could my appointment about the knee be next week?
4 Can I move my first knee appointment from Tuesday to next week?
4 Can I move my knee appointment from Wednesday to some day next week?
3 Can I cancel my knee appointment on Tuesday next week?
3 Can I move my eye appointment from Tuesday to next week?
3 Can I move my knee appointment from next week to Tuesday?
2 My knee has hurt every morning since last Tuesday.
2 Which papers do I bring to my appointment on Tuesday?
1 What can I take for a sore throat?

5 The hospital is {short|in need} of nurses for the night shift.
5 There are {too few|not enough} nurses at the hospital to work nights.
5 The hospital lacks nurses who work at night.
5 At night, the hospital does not have as many nurses as it needs.
4 The town hospital is short of nurses for the night shift.
4 The hospital is slightly short of nurses for the night shift this winter.
3 The hospital has plenty of nurses for the night shift.
3 The hospital is short of doctors for the night shift.
3 The hospital is short of nurses for the day shift.
2 The hospital pays nurses more for the night shift.
2 The hospital has opened a cafe for its nurses.
1 Medical students must learn the names of all the bones.

# shopping

5 I want to {return|send back} the shoes because they are too small.
5 The shoes are too small, so I {would like|want} to send them back.
5 As the shoes don't fit, being too small, I'd like to return them.
5 These shoes are going back to you because I need a bigger size.
4 I want to return the black shoes because they are too small.
4 I want to return the shoes I got last week because they are a bit too small.
3 I want to keep the shoes although they are too small.
3 I want to return the shoes because they are too large.
3 I want to return the shirt because it is too small.
2 I want to order the same shoes in brown.
2 The shoes I ordered were sent to my old address.
1 Does this jacket also come in green?

5 The parcel {arrived|got here} two weeks late and the box was crushed.
5 Two weeks late, the package finally arrived, in a crushed {box|carton}.
5 I received the parcel with a crushed box and a delay of two weeks.
5 My package took a fortnight longer than promised and its carton had been squashed.
4 The parcel arrived ten days late and the box was crushed.
4 The heavy parcel arrived two weeks late and the box was badly crushed.
3 The parcel arrived two weeks early and the box was crushed.
3 The parcel arrived two weeks late, but the box was intact.
3 The parcel arrived two weeks late and the box was empty.
2 The parcel was left at the door of my neighbour.
2 The parcel came with a card for two free coffees.
1 How much do you charge for gift wrapping?

5 The supermarket on the corner is now open {on Sundays|every Sunday}.
5 You can now shop on Sundays at the corner supermarket.
5 From now on, the {supermarket|grocery store} on the corner opens on Sundays too.
5 Sunday opening has been introduced by the supermarket at the corner.
4 The supermarket on the corner is now open on Sunday mornings.
4 The small supermarket on the corner is now open on Sundays until noon.
3 The supermarket on the corner is now closed on Sundays.
3 The pharmacy on the corner is now open on Sundays.
3 The supermarket on the corner has never been open on Sundays.
2 The supermarket on the corner sells bread from the day before at half price.
2 A thief broke into the corner supermarket on Sunday.
1 Prices at the flea market were lower than expected.

5 A couple is {looking at|viewing} lamps in a furniture store.
5 In a furniture shop, a couple is having a look at the lamps.
5 Lamps are being looked at by a couple in a furniture {store|shop}.
5 The picture shows a couple inspecting lamps at a furniture shop.
4 A young couple is looking at lamps in a large furniture store.
4 A couple is looking at desk lamps in a furniture store.
3 A couple is selling lamps in a furniture store.
3 A couple is looking at beds in a furniture store.
3 A lone man is looking at lamps in a furniture store.
2 A couple carries a rolled carpet out of a furniture store.
2 A salesman replaces a bulb in a furniture store.
1 A woman is trying on hats in front of a mirror.

5 The toy maker has {recalled|called back} its wooden train because small parts can come loose.
5 Since small parts can come off, the wooden train is being {recalled|called back} by its maker.
5 A recall of the wooden train was announced by the toy maker over small parts that may come loose.
5 Small pieces can come loose from the wooden train, so the toy company wants all of them back.
4 The toy maker has recalled its blue wooden train because small parts can come loose.
4 The Danish toy maker has recalled its wooden train because some small parts can come loose.
3 The toy maker has recalled its wooden train because the paint is poisonous.
3 The toy maker has recalled its rag doll because small parts can come loose.
3 The toy maker keeps selling its wooden train although small parts can come loose.
2 The toy maker was founded by two brothers a century ago.
2 Children in the shop may try out the wooden train.
1 The department store has a sale on winter coats.

# energy

5 The village {gets|draws} all its electricity from three wind turbines.
5 Three wind turbines {supply|provide} all the electricity in the village.
5 All of the village's power comes from three windmills that make electricity.
5 For its electricity, the village relies on nothing but three wind turbines.
4 The mountain village gets all its electricity from three wind turbines.
4 The village gets nearly all its electricity from three tall wind turbines.
3 The village gets none of its electricity from the three wind turbines.
3 The village gets all its electricity from three coal plants.
3 The hospital gets all its electricity from three wind turbines.
2 The village is against more wind turbines on its hill.
2 Electricity in the village failed twice last winter.
1 A dam in the mountains will store water for peak hours.

5 The government will {pay|cover} half the cost of solar panels on homes.
5 Half of what solar panels for the home cost will be {paid|covered} by the government.
5 Home owners who put up solar panels get half the price back from the state.
5 The state is going to bear 50 percent of the cost of solar panels on houses.
4 From next year, the government will pay half the cost of solar panels on homes.
4 The government will pay about half the cost of solar panels on family homes.
3 The government will pay half the cost of heat pumps in homes.
3 The government will no longer pay half the cost of solar panels on homes.
3 The government will double the tax on solar panels on homes.
2 The government has solar panels on the roof of its offices.
2 Solar panels on homes last for about twenty-five years.
1 Heating with wood pellets has become more popular.

5 The oil price {fell|dropped} to its lowest level in a year.
5 Oil became {cheaper|less expensive} than it had been at any time in a year.
5 The price of oil went down to a one-year low.
5 For a year, oil had not cost as little as it does after this drop.
4 The oil price fell briefly to its lowest level in a year.
4 The oil price fell on Thursday to its lowest level in almost a year.
3 The oil price rose to its highest level in a year.
3 The oil price fell to its lowest level in a day.
3 The gold price fell to its lowest level in a year.
2 The oil price depends on how much ships must pay for insurance.
2 Experts argue about what the oil price will be in a year.
1 The gas pipeline under the sea is being inspected.

5 Why is my {electricity|power} bill higher although I use less power?
5 I use less electricity, so why {has my bill gone up|is my bill higher}?
5 How come I pay more for electricity when I am using less of it?
5 My power consumption is down but the bill is up; what is the reason?
4 Why is my electricity bill slightly higher although I use less power?
4 Why is my monthly electricity bill higher although I use less power than last year?
3 Why is my electricity bill lower although I use more power?
3 Why is my electricity bill higher now that I use more power?
3 Why did I get no electricity bill although I use power?
2 Can I pay my electricity bill in cash?
2 Which of my devices uses the most power?
1 How do I read the gas meter in the cellar?

5 Engineers {shut down|switched off} the reactor after they found a crack in a pipe.
5 After a crack in a pipe was {found|discovered}, engineers took the reactor off line.
5 The discovery of a cracked pipe made engineers shut the reactor down.
5 Because a pipe turned out to be cracked, the reactor was switched off by engineers.
4 Engineers shut down the older reactor after they found a crack in a pipe.
4 Engineers shut down the reactor on Sunday after they found a tiny crack in a pipe.
3 Engineers restarted the reactor after they found a crack in a pipe.
3 Engineers shut down the reactor after they found a bird in a pipe.
3 Engineers kept the reactor running after they found a crack in a pipe.
2 Engineers from ten countries are building the reactor in France.
2 Engineers mended a crack in a water pipe with tape.
1 Workers are laying a high-voltage cable across the valley.
"""
