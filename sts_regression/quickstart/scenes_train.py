"""Hand-written scenes for the training pairs; `make_pairs.parse_scenes` documents the notation."""

TRAIN_SCENES = """
# kitchen

5 A woman is slicing {onions|some onions} on a wooden board.
5 Onions are being {sliced|cut into slices} by a woman on a wooden board.
5 On a wooden board, a lady {cuts|is cutting} onions into slices.
5 The picture shows a lady with a board made of wood, cutting up onions in slices.
4 A woman is slicing red onions on a wooden board.
4 In a bright kitchen, a lady is slicing onions on a wooden board.
3 A woman is slicing {tomatoes|some tomatoes} on a wooden board.
3 A man is slicing {onions|some onions} on a wooden board.
3 Onions are being peeled by a woman at a wooden board.
2 A woman is frying onions in a large pan.
2 A woman wipes a wooden board with a damp cloth.
1 Two cooks are decorating desserts for a party.

5 Bake the bread for forty minutes in a hot oven.
5 Leave the loaf in a hot oven for {forty|40} minutes.
5 The bread {needs|has to have} 40 minutes of baking at a high heat.
5 In an oven turned up high, the loaf takes forty minutes to bake.
4 Bake the bread for about forty minutes in a hot oven.
4 Bake the {dark|brown} rye bread for forty minutes in a hot oven.
3 Bake the bread for fourteen minutes in a hot oven.
3 Bake the bread for forty minutes in a cool oven.
3 Never bake the bread for forty minutes in a hot oven.
2 Let the bread cool for forty minutes before you cut it.
2 Clean the oven with hot water once the bread is out.
1 Whip the cream until it forms soft peaks.

5 How do I stop rice from sticking to the bottom of the pot?
5 My rice always sticks to the {bottom|base} of the pot; how can I prevent that?
5 What can I do so that rice doesn't stick to the bottom of my pan?
5 Is there a way to {keep|prevent} rice from clinging to the base of the pan?
4 How do I stop brown rice from sticking to the bottom of the pot?
4 How do I stop rice from sticking to the bottom of a cheap steel pot?
3 How do I get rice to stick together in the pot?
3 How do I stop eggs from sticking to the bottom of the pan?
3 My rice always boils over the rim of the pot; how can I prevent that?
2 How much water do I need for one cup of rice?
2 How do I scrub burnt milk off the bottom of a pot?
1 Does anyone have a recipe for a vegetarian lasagne?

5 The chef {added|put} too much salt to the soup, so the guests sent it back.
5 Guests returned the soup because the chef had oversalted it.
5 Since the cook had put in too much salt, the soup was sent back by the {guests|diners}.
5 The diners sent their soup back, as it had been made far too salty by the chef.
4 The young chef added too much salt to the soup, so the guests sent it back.
4 Guests returned the tomato soup because the chef had oversalted it.
3 The chef added too little salt to the soup, so the guests sent it back.
3 The chef added too much salt to the soup, but the guests finished it.
3 The chef added too much pepper to the soup, so the guests sent it back.
2 The guests praised the chef for his fish soup.
2 The chef tasted the sauce and asked for more salt.
1 The waiter spilled red wine on a white tablecloth.

5 Our dishwasher leaves a white film on {every glass|all the glasses}.
5 All of our glasses come out of the dishwasher with a white film on them.
5 After a wash in our dishwasher, there is a whitish coating on each glass.
5 Every single glass is coated in a {white|whitish} film when we take it out of the dishwasher.
4 Our new dishwasher leaves a white film on every glass.
4 Our dishwasher leaves a faint white film on most glasses.
3 Our dishwasher leaves a white film on every knife.
3 Our dishwasher no longer leaves a white film on the glasses.
3 Our dishwasher leaves scratches on every glass.
2 Our dishwasher stops halfway and will not drain.
2 We wash our best glasses by hand in the sink.
1 The fridge in my sister's kitchen makes a humming noise.

# trains

5 The {last|final} train to Leeds was {cancelled|called off} on Friday evening.
5 On Friday evening the {operator|train company} cancelled the final service to Leeds.
5 Friday evening saw the cancellation of the last Leeds train.
5 There was no last train to Leeds on Friday evening, as it had been cancelled.
4 The last train to Leeds was cancelled on Thursday evening.
4 The last train to Leeds was cancelled late on Friday evening without any notice.
3 The first train to Leeds was cancelled on Friday evening.
3 The last train to Leeds was delayed on Friday evening.
3 The last train to York was cancelled on Friday evening.
2 Passengers on the Friday evening train to Leeds were given free coffee.
2 The station in Leeds will get two new platforms.
1 Conductors on the night service to Vienna now wear green caps.

5 You must {change|change trains} in Cologne to get to Brussels.
5 To reach Brussels, you {have to|need to} change trains in Cologne.
5 Getting to Brussels {requires|involves} a change in Cologne.
5 The trip to Brussels is not direct; you switch trains in Cologne.
4 You must change in Cologne, at the main station, to get to Brussels.
4 You must change once, in Cologne, to get to Brussels in the morning.
3 You must change in Brussels to get to Cologne.
3 You need not change in Cologne to get to Brussels.
3 You must spend the night in Cologne to get to Brussels.
2 The trip from Cologne to Brussels takes two hours.
2 Many trains to Brussels are full at the weekend.
1 The railway museum lends old timetables to collectors.

5 Passengers were stuck in the tunnel for three hours after a power failure.
5 A power failure left {passengers|travellers} trapped in the tunnel for three hours.
5 For three hours, travellers could not leave the tunnel because the power had {failed|gone out}.
5 An electrical outage meant a three-hour wait inside the tunnel for those on board.
4 Hundreds of passengers were stuck in the tunnel for three hours after a power failure.
4 Passengers were stuck in the tunnel for almost three hours after a brief power failure.
3 Passengers were stuck in the tunnel for three minutes after a power failure.
3 Passengers were stuck in the tunnel for three hours after a fire.
3 Passengers were led out of the tunnel at once after a power failure.
2 Workers repaired the power line in the tunnel overnight.
2 Passengers have to pay more for the ride through the tunnel.
1 Workers replaced the rails on the coastal line last summer.

5 Can I take my bicycle on the morning train without a {reservation|booking}?
5 Is it possible to bring a bike on the morning train if I haven't reserved a space for it?
5 Do I need to book a place for my bike on the morning train, or can I just take it?
5 Are bicycles allowed on the train in the morning without being {booked|reserved} beforehand?
4 Can I take my folding bicycle on the morning train without a reservation?
4 Can I take my bicycle on the evening train without a reservation?
3 Can I take my dog on the morning train without a reservation?
3 Can I take my bicycle on the morning bus without a reservation?
3 Can I take my bicycle on the morning train without a ticket?
2 My bicycle was damaged on the train this morning.
2 Can I change the seat reservation for the morning train?
1 Where does the first-class carriage stop?

5 A man with a {suitcase|travel case} is running along the platform to catch his train.
5 Hurrying to catch his train, a man with a suitcase runs down the platform.
5 A man {sprints|runs} along the platform with his suitcase so as not to miss the train.
5 To make his train, a man carrying a suitcase is running down the platform.
4 A man with a blue suitcase is running along the platform to catch his train.
4 A man in a grey coat is running along the platform with a suitcase to catch his train.
3 A man with a suitcase is waiting on the platform to board his train.
3 A woman with a suitcase is running along the platform to catch her train.
3 A man without any luggage is running along the platform to catch his train.
2 A man is asleep on his suitcase in the station hall.
2 A man with a suitcase buys a newspaper at a stand on the platform.
1 A little girl waves at a passing freight train.

# weather

5 Heavy rain is {expected|forecast} in the south on Sunday.
5 Forecasters {expect|predict} heavy rainfall in southern areas on Sunday.
5 On Sunday, the south should get a lot of rain.
5 The outlook for southern regions on Sunday is for {heavy rain|downpours}.
4 Heavy rain is expected in the south on Sunday afternoon.
4 Heavy rain and some wind are expected in the south on Sunday.
3 Heavy rain is expected in the north on Sunday.
3 No rain is expected in the south on Sunday.
3 Heavy snow is expected in the south on Sunday.
2 Heavy rain washed away a footpath in the south.
2 It will be warm and dry in the south from Monday.
1 April was unusually sunny on the islands.

5 The storm {tore|ripped} the roof off a barn near the village.
5 A barn near the village lost its roof in the storm.
5 Near the village, the roof of a barn was torn off by the storm.
5 The gale {blew|carried} away the roof of a barn close to the village.
4 The violent storm tore the roof off an old barn near the village.
4 The storm tore the roof off a barn a mile from the village last night.
3 The storm tore the roof off a church near the village.
3 The storm left the roof of a barn near the village undamaged.
3 The storm tore the doors off a barn near the village.
2 The villagers spent the day of the storm in a barn.
2 After the storm, the village had no running water.
1 Hail the size of golf balls dented dozens of cars.

5 It was the coldest night in the valley for {twenty|20} years.
5 For two decades, no night in the valley had been as cold.
5 The valley had its {coldest|chilliest} night in two decades.
5 Not in twenty years had night temperatures in the valley dropped so low.
4 It was the coldest night in the valley for nearly twenty years.
4 It was the coldest January night in the valley for twenty years.
3 It was the warmest night in the valley for twenty years.
3 It was the coldest night in the valley for two years.
3 It was the coldest night on the coast for twenty years.
2 Farmers in the valley lit fires during the cold night.
2 Nights in the valley are usually cool, even in summer.
1 Last month's heat broke all records in the desert.

5 Thick fog forced the airport to close {this morning|in the morning}.
5 The airport had to shut this morning because of dense fog.
5 Dense fog led to the closure of the airport {this morning|in the morning}.
5 This morning, fog was so thick that the airport was closed.
4 Thick fog forced the small airport to close this morning.
4 Thick fog forced the airport to close for an hour this morning.
3 Thick fog forced the harbour to close this morning.
3 Despite thick fog, the airport stayed open this morning.
3 Thick smoke forced the airport to close this morning.
2 The airport measures fog with a new laser device.
2 By noon the thick fog had lifted.
1 High winds kept the ferries in port all weekend.

5 Children are {building|making} a snowman in front of a red house.
5 A snowman is being built by children outside a red house.
5 In front of a house painted red, {kids|children} are making a snowman.
5 Outside a red house, some kids put together a snowman.
4 Three children are building a snowman in front of a red house.
4 Children are building a {large|big} snowman in front of a house.
3 Children are knocking down a snowman in front of a red house.
3 Children are building an igloo in front of a red house.
3 Two old men are building a snowman in front of a red house.
2 Children shovel the snow away in front of a red house.
2 A snowman with a carrot nose is melting in the sun.
1 A couple shares an umbrella in a sudden shower.

# football

5 The home team {won|took} the match with a goal in the last minute.
5 A last-minute goal gave the hosts {victory|the win}.
5 Thanks to a goal in the final minute, the home side won the game.
5 It took until the final minute for the hosts to score the winner.
4 The home team won the match with a header in the last minute.
4 The home team won the tense match with a goal in the last minute.
3 The home team lost the match to a goal in the last minute.
3 The away team won the match with a goal in the last minute.
3 The home team won the match with a goal in the first minute.
2 The home team played most of the match with ten men.
2 A player of the home team was hurt in the last minute.
1 The league will use goal-line cameras from next season.

5 The goalkeeper saved two penalties on Saturday.
5 Two penalties were {saved|stopped} by the goalkeeper on Saturday.
5 On Saturday, the keeper {kept out|stopped} two spot kicks.
5 Saturday's match saw the keeper make two penalty saves.
4 The goalkeeper saved two penalties on Sunday.
4 The tall goalkeeper saved two weak penalties on Saturday.
3 The goalkeeper missed two penalties on Saturday.
3 The goalkeeper saved two corner kicks on Saturday.
3 The goalkeeper caused two penalties on Saturday.
2 The goalkeeper was given a new contract on Saturday.
2 The goalkeeper threw his gloves into the crowd.
1 The striker was sent off for a late tackle.

5 The club has {sacked|fired} its coach after five defeats in a row.
5 After losing five games running, the club dismissed its {coach|manager}.
5 Five straight defeats have cost the club's manager his job.
5 The coach was dismissed by the club following a run of five losses.
4 The club has sacked its Spanish coach after five defeats in a row.
4 The club sacked its coach on Monday after five narrow defeats in a row.
3 The club has praised its coach after five defeats in a row.
3 The club has sacked its coach after five wins in a row.
3 The club has sacked its doctor after five defeats in a row.
2 The club has hired a coach who once played for Spain.
2 The coach blamed the referee for the defeat.
1 The young forward signed for a team in Portugal.

5 Two boys are kicking a ball on a {muddy|mud-covered} field.
5 On a muddy field, two boys are playing with a ball, kicking it around.
5 A ball is being kicked about by two boys on a field covered in mud.
5 There is a muddy pitch on which a pair of boys {kick|are kicking} a ball.
4 Two boys in blue shirts are kicking a ball on a muddy field.
4 Two boys are kicking a ball on a muddy field in the rain.
3 Two girls are kicking a ball on a muddy field.
3 Two boys are throwing a frisbee on a muddy field.
3 Two boys are looking for their ball on a muddy field.
2 Two boys carry a goal across a muddy field.
2 Two boys clean their muddy football boots.
1 A referee shows a yellow card to an angry defender.

5 Tickets for the cup final sold out {within|in} an hour.
5 Within an hour, every ticket for the cup final had been sold.
5 It took only an hour for the cup final to sell out.
5 All the cup final tickets were {gone|snapped up} in an hour.
4 Tickets for the women's cup final sold out within an hour.
4 Tickets for the cup final sold out online in just under an hour.
3 Tickets for the cup final were still on sale after an hour.
3 Tickets for the cup final sold out within a month.
3 Scarves for the cup final sold out within an hour.
2 Tickets for the cup final cost twice as much as last year.
2 The cup final lasted more than two hours.
1 Fans sang for their team all the way to the stadium.

# school

5 The teacher {gave back|returned} the maths tests on Monday.
5 On Monday, pupils got their maths tests back from the teacher.
5 The maths tests were {handed back|returned} by the teacher on Monday.
5 Monday was the day the teacher returned the tests in mathematics.
4 The teacher gave back the corrected maths tests on Monday morning.
4 The {new|newly hired} teacher gave back the maths tests on Tuesday.
3 The teacher handed out the maths homework on Monday.
3 The teacher gave back the history tests on Monday.
3 The teacher lost the maths tests on Monday.
2 The teacher was ill on the day of the maths test.
2 Pupils asked for more time in the maths test.
1 Pupils in the first grade learn to write with a pencil.

5 The school has {banned|forbidden} phones in the classroom.
5 Phones are no longer {allowed|permitted} in class at the school.
5 Pupils at the school may not have phones in the classroom any more.
5 A ban on phones in lessons has been introduced by the school.
4 The school has banned phones and tablets in the classroom.
4 The village school has banned phones in the classroom since Easter.
3 The school has allowed phones in the classroom.
3 The school has banned drinks in the classroom.
3 The school has banned phones in the playground.
2 The school has bought a phone for every classroom.
2 A pupil found a phone under a desk at school.
1 Lunch at the primary school now starts at noon.

5 My son is too {shy|timid} to ask questions in class.
5 Shyness {keeps|stops} my son from asking questions during lessons.
5 My boy doesn't dare to ask questions in class because he is so shy.
5 Asking something in lessons is hard for my son, as he is very timid.
4 My eight-year-old son is too shy to ask questions in class.
4 My son is too shy to ask questions in his English class.
3 My son is too lazy to ask questions in class.
3 My daughter is too shy to ask questions in class.
3 My son is too shy to eat with his class.
2 My son asks his teacher questions about dinosaurs all day.
2 My son made two new friends in his class.
1 Many parents help out in the school library.

5 Because {too few|not enough} students signed up, the Latin course was dropped.
5 The Latin course was cancelled for lack of students.
5 Low enrolment led to the {cancellation|scrapping} of the Latin course.
5 So few students enrolled in Latin that the course will not take place.
4 Because too few students signed up, the evening Latin course was dropped.
4 The Latin course for beginners was cancelled for lack of students this spring.
3 Because so many students signed up, a second Latin course was added.
3 The Latin course was cancelled for lack of a teacher.
3 The Greek course was cancelled for lack of students.
2 Students in the Latin course put on a short play.
2 Few students pass the Latin course at the first attempt.
1 Exams at the college will start in the second week of June.

5 The school bus leaves at {half past seven|seven thirty} from the church.
5 At 7:30 the school bus sets off from the church.
5 Pupils are {picked up|collected} outside the church by the school bus at half past seven.
5 Departure of the school bus is at seven thirty, from the church.
4 The yellow school bus leaves at half past seven from the church.
4 The school bus leaves at half past seven sharp from the old church.
3 The school bus leaves at half past eight from the church.
3 The school bus leaves at half past seven from the library.
3 The school bus arrives at half past seven at the church.
2 The driver of the school bus lives behind the church.
2 Pupils sang all the way on the school bus.
1 The headmaster greets every pupil at the gate.

# software

5 The app {crashes|closes unexpectedly} every time I open a large file.
5 Whenever I open a large file, the app {crashes|falls over}.
5 Opening a big file always makes the program crash.
5 I can't open any big file without the app crashing on me.
4 The app crashes nearly every time I open a very large file.
4 On my laptop, the app crashes every time I open a large file.
3 The app crashes every time I close a large file.
3 The app runs fine every time I open a large file.
3 The app crashes every time I print a large file.
2 The app can compress a large file in seconds.
2 How do I change the language of the app?
1 The program now has a dark colour theme.

5 Please {reset the|set a new} password for my account.
5 I would like the password for my account to be reset.
5 Could you {reset|change} my account password for me?
5 I'm asking you to give my account a new password.
4 Please reset the password for my work account as soon as you can.
4 I forgot the password for my account, so please reset it.
3 Please reset the display name for my account.
3 Please do not reset the password for my account.
3 Please send the password for my account to my brother.
2 Please delete my account and all of my data.
2 My account was locked after three tries with a password.
1 I cannot find the button that prints an invoice.

5 The update {deleted|wiped} all the photos on my phone.
5 All my phone's photos were {deleted|erased} by the update.
5 After the update, every picture on my phone was gone.
5 I lost all the pictures on my phone because of the update.
4 The latest update deleted all the photos on my old phone.
4 Last night the update deleted almost all the photos on my phone.
3 The update deleted all the contacts on my phone.
3 The update restored all the photos on my phone.
3 The update deleted all the photos on my camera.
2 The update makes photos on my phone look sharper.
2 My phone is too old for the update.
1 A new version of the browser blocks most advertisements.

5 Our website was {down|offline} for six hours because a server failed.
5 A server failure took our website offline for six hours.
5 For six hours nobody could {reach|visit} our website, since a server had failed.
5 Our site suffered a six-hour outage caused by a failed server.
4 Our main website was down for about six hours because a server failed.
4 Our website was down for six hours yesterday because one old server failed.
3 Our website was down for six seconds because a server failed.
3 Our website stayed up for six hours although a server failed.
3 Our website was down for six hours because a bill was not paid.
2 Our website will move to a faster server in spring.
2 Our website runs on a server in the basement.
1 The developers rewrote the search page in one weekend.

5 To save battery, turn off the {screen|display} when you are not using it.
5 Switch the display off when it's not in use so that the battery lasts longer.
5 Turning off an unused screen {saves|helps to save} battery power.
5 Your battery will last longer if you switch off the screen whenever you don't need it.
4 To save battery, dim or turn off the screen when you are not using it.
4 To save battery on a trip, turn off the screen when you are not using it.
3 To save battery, turn on the screen when you are not using it.
3 To save battery, turn off the wireless link when you are not using it.
3 To protect your eyes, turn off the screen when you are not using it.
2 Clean the screen with a soft, dry cloth.
2 The battery lasts for ten hours while the screen is on.
1 Press both keys at once to take a picture of your desktop.

# banking

5 The central bank {raised|increased} interest rates by a quarter point.
5 Interest rates were {lifted|raised} a quarter point by the central bank.
5 A quarter-point rise in interest rates was announced by the central bank.
5 The central bank decided that interest rates would go up by 0.25 points.
4 On Thursday the central bank raised interest rates by a quarter point.
4 The central bank raised interest rates by a quarter point, as expected.
3 The central bank lowered interest rates by a quarter point.
3 The central bank raised interest rates by a full point.
3 The central bank refused to raise interest rates by a quarter point.
2 The head of the central bank spoke about interest rates at a dinner.
2 The central bank will print a new ten-euro note.
1 A weak currency made imports more expensive last year.

5 I was {charged|billed} twice for the same transfer.
5 The bank took the fee for a single transfer two times.
5 My account was debited twice for {one|one and the same} transfer.
5 For one transfer, I have had to pay the charge two times over.
4 Last week I was charged twice for the same foreign transfer.
4 I was charged twice for the same small transfer.
3 I was charged only once for the two transfers.
3 I was charged twice for the same cash withdrawal.
3 I was paid twice for the same transfer by mistake.
2 My transfer has still not arrived after a week.
2 Which fee do you charge for a transfer to Canada?
1 How do I add my wife as a joint holder of the loan?

5 My card was {swallowed|kept} by the cash machine in the hotel.
5 The cash machine in the hotel {swallowed|kept} my card.
5 In the hotel, an ATM would not give me my card back.
5 The hotel's ATM took in my bank card and didn't return it.
4 My credit card was swallowed by the cash machine in the hotel last night.
4 My card was swallowed by one of the two cash machines in the hotel.
3 My card was stolen from me at the cash machine in the hotel.
3 My card was accepted by the cash machine in the hotel.
3 My card was swallowed by the coffee machine in the hotel.
2 There is a cash machine on the ground floor of the hotel.
2 I need a card that works in cash machines abroad.
1 Nobody answers the help line of my bank at weekends.

5 The {branch|bank branch} on Mill Street will close at the end of May.
5 At the end of May, the bank is shutting its Mill Street branch.
5 The closure of the Mill Street branch is planned for {the end of May|late May}.
5 From the end of May, there will no longer be a bank branch on Mill Street.
4 The small branch on Mill Street will close in the middle of May.
4 The popular branch on Mill Street will close for good at the end of May.
3 The branch on Mill Street will open at the end of May.
3 The branch on Park Street will close at the end of May.
3 The branch on Mill Street will stay open beyond the end of May.
2 The branch on Mill Street has three advisers for savings.
2 Customers queued outside the branch on Mill Street.
1 The savings bank now advises its customers in four languages.

5 You can open a savings account online in ten minutes.
5 It takes ten minutes to {open|set up} a savings account on the internet.
5 A savings account can be {set up|opened} over the internet in ten minutes.
5 With ten minutes and an internet connection, you can have a savings account.
4 You can easily open a savings account online in about ten minutes.
4 Students can open a savings account online in ten minutes.
3 You can close a savings account online in ten minutes.
3 You cannot open a savings account online.
3 You can open a savings account online in ten days.
2 A savings account currently pays two percent a year.
2 Children get a savings account with a toy bank.
1 Older customers prefer to get their statements on paper.

# garden

5 Water the {tomato plants|tomatoes} early in the morning.
5 Early morning is when tomato plants should be watered.
5 Give your tomatoes their water {early in the morning|in the early morning}.
5 The tomato plants are best watered at the start of the day.
4 Water the young tomato plants early in the morning.
4 Water the tomato plants every day, early in the morning.
3 Water the tomato plants late in the evening.
3 Never water the tomato plants early in the morning.
3 Pick the tomatoes early in the morning.
2 Tomato plants need a sunny spot and a stake.
2 Sow lettuce between the rows of tomato plants.
1 Prune the roses before new buds appear.

5 An {elderly|old} man is cutting the hedge from a ladder with shears.
5 Using shears and a ladder, an elderly man trims the hedge.
5 The hedge is being {cut|trimmed} by an old man with shears on a ladder.
5 There's an old man on a ladder, giving the hedge a trim with shears.
4 An elderly man in a straw hat is cutting the hedge from a ladder with shears.
4 An elderly man is cutting a tall hedge from a ladder with shears.
3 An elderly man is cutting the roses from a ladder with shears.
3 An elderly woman is cutting the hedge from a ladder with shears.
3 An elderly man is cutting down the hedge with a chainsaw.
2 An elderly man leans a ladder against an apple tree.
2 An old man reads a book in the shade of the hedge.
1 A woman in gloves is raking dry leaves into a pile.

5 Why are the leaves on my lemon tree turning yellow?
5 My lemon tree's leaves are {turning|going} yellow; what could be the reason?
5 What makes the {leaves|foliage} of my lemon tree go yellow?
5 Does anyone know the cause of yellowing leaves on a lemon tree like mine?
4 Why are some of the leaves on my potted lemon tree turning yellow?
4 Why are the leaves on my lemon tree turning a pale yellow this winter?
3 Why are the leaves on my lemon tree falling off?
3 Why are the lemons on my tree not turning yellow?
3 Why are the leaves on my rose bush turning yellow?
2 When should I bring my lemon tree indoors?
2 How often do you feed a lemon tree?
1 What kind of soil is best for growing blueberries?

5 The first frost {killed|destroyed} all the dahlias in the park.
5 All the dahlias in the park were killed by the first frost.
5 None of the park's dahlias {survived|made it through} the first frost.
5 With the first frost, every dahlia in the park died.
4 The first frost killed nearly all the dahlias in the park.
4 In October, the first hard frost killed all the dahlias in the park.
3 All the dahlias in the park survived the first frost.
3 The first frost killed all the palm trees in the park.
3 A fungus killed all the dahlias in the park.
2 The gardeners in the park show dahlias from Mexico.
2 Dahlia bulbs are dug up before the first frost.
1 Tulips bloom along the main avenue every April.

5 We {covered|spread} the beds with straw to keep weeds down.
5 To stop weeds, we put straw over the beds.
5 Straw was {laid|spread} on our beds in order to hold back the weeds.
5 Our beds got a layer of straw so that fewer weeds would grow.
4 We covered the vegetable beds with straw to keep weeds down.
4 In spring we covered the beds with a thick layer of straw to keep weeds down.
3 We covered the beds with plastic sheets to keep weeds down.
3 We covered the beds with straw to keep the roots warm.
3 We cleared the straw from the beds to pull up weeds.
2 We pulled weeds out of the beds all afternoon.
2 We buy straw for our beds from a farmer.
1 My neighbour grows pumpkins on his compost heap.

# animals

5 A brown dog is {jumping|leaping} over a fallen log in the forest.
5 In the woods, a brown dog leaps over a log lying on the ground.
5 A dog with brown fur {jumps|leaps} across a fallen tree trunk in the forest.
5 The photo shows a brown dog in mid-jump over a fallen log in a forest.
4 A big brown dog is jumping over a fallen log in the forest.
4 A brown dog with a red collar is jumping over a log in the forest.
3 A brown dog is sleeping on a fallen log in the forest.
3 A brown horse is jumping over a fallen log in the forest.
3 A brown dog is jumping over a sleeping cat in the forest.
2 A brown dog is drinking from a stream in the forest.
2 Two foxes hide beneath a fallen log.
1 A squirrel sits on a branch and nibbles a nut.

5 My cat {has refused|has been unwilling} to eat dry food since we moved.
5 Since the move, my cat has refused to touch dry food.
5 My cat hasn't eaten {any dry food|dry food} since we moved house.
5 Ever since we moved house, dry food has been rejected by my cat.
4 My old cat has refused to eat dry food since we moved.
4 My cat has mostly refused to eat dry food since we moved.
3 My cat has refused to drink water since we moved.
3 My cat has loved to eat dry food since we moved.
3 My cat has refused to eat dry food since she had kittens.
2 My cat hid under the bed when we moved.
2 Which dry food is good for an older cat?
1 My rabbit chews on every cable it can find.

5 The zoo's elephant {gave birth to|had} a calf last night.
5 Last night, a calf was born to the elephant at the zoo.
5 An elephant calf {was born|came into the world} at the zoo last night.
5 The zoo has had a baby elephant since last night, when its mother gave birth.
4 The zoo's elephant gave birth to a healthy calf last night.
4 The zoo's oldest elephant gave birth to a calf in the early hours.
3 The zoo's elephant lost her calf last night.
3 The zoo's giraffe gave birth to a calf last night.
3 The zoo's elephant broke out of her pen last night.
2 The zoo's elephant celebrated her fiftieth birthday with a cake.
2 Visitors to the zoo may feed the elephant calf.
1 Three penguins moved into a new pool at the aquarium.

5 Volunteers {counted|recorded} fewer swallows this year than last year.
5 This year's count of swallows by volunteers was {lower|smaller} than last year's.
5 Compared with last year, volunteers saw fewer swallows this year.
5 The number of swallows that volunteers recorded fell from last year to this one.
4 Volunteers counted slightly fewer swallows this year than last year.
4 Volunteers in the county counted fewer swallows this year than last year.
3 Volunteers counted more swallows this year than last year.
3 Volunteers counted fewer bats this year than last year.
3 Volunteers counted just as many swallows this year as last year.
2 Volunteers built nests for swallows out of clay.
2 Most swallows leave for Africa in September.
1 A pair of storks has returned to the chimney of the brewery.

5 A girl is feeding carrots to a white pony {over|across} the fence.
5 A white pony is being given carrots over the fence by a girl.
5 Over the fence, a girl {holds out|offers} carrots for a white pony to eat.
5 A white pony eats the carrots that a girl hands it across the fence.
4 A girl in rubber boots is feeding carrots to a white pony over the fence.
4 A little girl is feeding carrots to a pony over the fence.
3 A girl is feeding carrots to a white goat over the fence.
3 A girl is eating carrots beside a white pony at the fence.
3 A boy is feeding carrots to a white pony over the fence.
2 A girl brushes the mane of a white pony.
2 A white pony has escaped through a hole in the fence.
1 A farmer is shearing a sheep in a barn.

# music

5 The band {cancelled|called off} its concert because the singer was ill.
5 Because of the singer's illness, the band's concert was cancelled.
5 The concert did not take place, as the band's singer had {fallen|become} ill.
5 An ill singer forced the band to call off its concert.
4 The band cancelled its open-air concert because the singer was ill.
4 The band cancelled its concert on Tuesday because the singer had a fever and was ill.
3 The band played its concert although the singer was ill.
3 The band cancelled its concert because the drummer was ill.
3 The band cancelled its concert because the hall was flooded.
2 The band's singer wrote a song about her illness.
2 The singer left the band after the concert.
1 The festival will have a second stage next summer.

5 A man is playing the {violin|fiddle} in an empty theatre.
5 In a theatre without an audience, a man plays the violin.
5 The {violin|fiddle} is being played by a man in a theatre with nobody else there.
5 All alone in a theatre, a man plays his fiddle.
4 A man in a black suit is playing the violin in an empty theatre.
4 A bearded man is playing the violin at night in an empty theatre.
3 A man is playing the trumpet in an empty theatre.
3 A man is playing the violin in a crowded theatre.
3 A man is tuning his violin in an empty theatre.
2 A man forgot his violin in the theatre.
2 Young musicians may practise in the theatre on Mondays.
1 A young woman strums a guitar by the sea.

5 How long does it take to learn the piano as an adult?
5 As a grown-up, how {much time|long} do I need to learn to play the piano?
5 What is a realistic time for an adult to learn piano playing?
5 If you are already an adult, how many years does learning the piano {take|require}?
4 How long does it roughly take to learn the piano as an older adult?
4 How long does it take to learn some easy piano pieces as an adult?
3 How long does it take to learn the piano as a child?
3 How much does it cost to learn the piano as an adult?
3 How long does it take to learn the drums as an adult?
2 Is it a good idea to buy a used piano?
2 As an adult, I still remember my first piano teacher.
1 Which strings are best for a cheap guitar?

5 Her new album {topped|led} the charts in nine countries.
5 In nine countries, her new album went to number one.
5 Nine countries had her {new|latest} album at the top of their charts.
5 Her latest record reached first place in the charts of nine countries.
4 Her new album briefly topped the charts in nine countries.
4 Her new jazz album topped the charts in nine countries last month.
3 Her new album missed the charts in nine countries.
3 Her new album topped the charts in just one country.
3 Her first album topped the charts in nine countries.
2 Her new album was recorded in nine days.
2 She thanked fans in nine countries in a video.
1 The rapper gave away his first song for free.

5 The choir is looking for {tenors|tenor singers} for its Christmas concert.
5 For its Christmas concert, the choir {needs|is in need of} tenors.
5 Tenors are wanted by the choir for the concert at Christmas.
5 If you sing tenor, the choir would like to have you at its Christmas concert.
4 The church choir is looking for tenors for its Christmas concert.
4 The choir is looking for two more tenors for its Christmas concert.
3 The choir has found enough tenors for its Christmas concert.
3 The choir is looking for trumpet players for its Christmas concert.
3 The choir is looking for tenors for its trip to Rome.
2 The choir sold cookies after its Christmas concert.
2 A tenor from the choir has won a prize.
1 The orchestra is tuning up before the opera begins.

# courts

5 The court {rejected|dismissed} the driver's appeal.
5 The driver's appeal was {rejected|turned down} by the court.
5 Judges threw out the appeal that the driver had lodged.
5 The driver failed with his appeal in court.
4 On Wednesday the court rejected the driver's appeal.
4 The court rejected the young driver's second appeal.
3 The court upheld the driver's appeal.
3 The court rejected the victim's appeal.
3 The court postponed its ruling on the driver's appeal.
2 The driver told the court that he had been tired.
2 The court took away the driver's licence for a year.
1 The judge sent a burglar to prison for four years.

5 Police {arrested|detained} two men after a robbery at a jewellery shop.
5 Two men were {arrested|taken into custody} by police following a jewellery shop robbery.
5 After a jeweller's was robbed, officers took two men into custody.
5 The robbery of a jewellery store led to two men being arrested by the police.
4 Police arrested two masked men after a robbery at a jewellery shop.
4 Police arrested two men on Friday after a robbery at a jewellery shop in the old town.
3 Police released two men after a robbery at a jewellery shop.
3 Police arrested two men after a fight at a jewellery shop.
3 Police arrested two women after a robbery at a jewellery shop.
2 Police returned stolen jewellery worth millions to its owners.
2 Two men told police about a robbery they had seen.
1 Detectives found a stolen painting in a garage.

5 The jury found the accountant {not guilty|innocent} of fraud.
5 The accountant was {cleared|acquitted} of fraud by the jury.
5 In the fraud case, jurors decided that the accountant was not guilty.
5 The jury acquitted the accountant, who had been charged with fraud.
4 The jury found the former accountant not guilty of fraud.
4 After two days, the jury found the accountant not guilty of tax fraud.
3 The jury found the accountant guilty of fraud.
3 The jury found the accountant not guilty of murder.
3 The jury could not agree on whether the accountant was guilty of fraud.
2 The accountant showed the jury letters from his boss.
2 The police searched the accountant's office for files.
1 The trial of the art dealer will begin in May.

5 A police officer is {directing|guiding} traffic with a whistle.
5 Traffic is being directed by an officer with a whistle.
5 With a whistle, a policeman {guides|directs} the traffic.
5 A policeman uses a whistle to direct the passing cars.
4 A police officer in white gloves is directing traffic with a whistle.
4 A police officer is directing heavy traffic with a whistle.
3 A police officer is directing traffic with a flashlight.
3 A schoolboy is directing traffic with a whistle.
3 A police officer is stopping all traffic with a whistle.
2 A police officer helps a lady across the street.
2 A police officer blows a whistle at a thief.
1 Two policewomen on horseback patrol the park.

5 Police are {asking|appealing to} witnesses of the bridge accident to come forward.
5 Anyone who saw the accident on the bridge is {asked|requested} to contact the police.
5 Officers are looking for people who witnessed the accident on the bridge.
5 Witnesses to the bridge accident should get in touch with police.
4 Police are asking witnesses of Sunday's bridge accident to come forward.
4 Police are asking witnesses of the fatal bridge accident to come forward.
3 Police are asking the driver in the bridge accident to come forward.
3 Police are asking witnesses of the bridge accident to keep quiet.
3 Police have heard enough witnesses of the bridge accident.
2 Police have closed the bridge to trucks.
2 A witness gave the police a film of the stolen van.
1 Officers caught a pickpocket at the Christmas market.

# housing

5 The landlord wants to {raise|increase} our rent by ten percent.
5 Our rent is to go up by ten percent, if the landlord {gets his way|has his way}.
5 A ten percent rent increase is what our landlord is asking of us.
5 Our landlord intends to make us pay ten percent more rent.
4 The landlord wants to raise our rent by ten percent from July.
4 The new landlord wants to raise our monthly rent by ten percent.
3 The landlord wants to lower our rent by ten percent.
3 The landlord does not want to raise our rent.
3 The landlord wants to raise our rent by fifty percent.
2 The landlord wants to sell the house we rent.
2 Our rent includes heat, water and a parking space.
1 Our neighbours complain about the noise in the stairwell.

5 The {lift|elevator} in our building has been broken for three weeks.
5 For three weeks now, the elevator in our {building|block} has been out of order.
5 Our building's lift stopped working three weeks ago and still doesn't run.
5 It has been three weeks since the lift in our block broke down, and nobody has fixed it.
4 The lift in our building has been broken for about three weeks.
4 The only lift in our tall building has been broken for three weeks.
3 The boiler in our building has been broken for three weeks.
3 The lift in our building was broken for three minutes.
3 The lift in our building was repaired three weeks ago.
2 The lift in our building holds six people.
2 A neighbour got her sofa stuck in the lift.
1 The caretaker sweeps the stairs every Monday.

5 For rent: two-room flat with a balcony, {close|near} to the university.
5 A flat with two rooms and a balcony is available to rent near the university.
5 We are letting a two-room apartment with a balcony {near|close to} the university.
5 Close to the university, you can rent a flat that has two rooms and a balcony.
4 For rent: sunny two-room flat with a balcony, close to the university.
4 For rent from June: two-room flat with a small balcony, close to the university.
3 For sale: two-room flat with a balcony, close to the university.
3 For rent: two-room flat without a balcony, close to the university.
3 For rent: six-room flat with a balcony, close to the university.
2 Student couple seeks a room close to the university.
2 We turned the balcony of our two-room flat into a tiny garden.
1 Wanted: housemate for a large house with a cellar in the suburbs.

5 Water is {dripping|leaking} through the ceiling of our bathroom.
5 The ceiling in our bathroom is leaking water.
5 Our bathroom has a leaky ceiling, with water {coming|dripping} through.
5 There is water coming through our bathroom ceiling, drop by drop.
4 Since last night, water has been dripping through the ceiling of our bathroom.
4 Brown water is dripping through the ceiling of our small bathroom.
3 Water is dripping through the ceiling of our bedroom.
3 Water has stopped dripping through the ceiling of our bathroom.
3 Plaster is falling from the ceiling of our bathroom.
2 We painted the ceiling of our bathroom pale blue.
2 There is no hot water in our bathroom.
1 The kitchen floor in our house needs new tiles.

5 The couple {bought|purchased} an old farmhouse and renovated it themselves.
5 After buying an old farmhouse, the couple did the renovation on their own.
5 An old farmhouse was {bought|purchased} and done up by the couple without any help.
5 The couple acquired a farmhouse that was old and fixed it up with their own hands.
4 The couple bought an old farmhouse in Wales and renovated it themselves.
4 The young couple bought an old stone farmhouse and renovated it themselves.
3 The couple bought an old farmhouse and tore it down.
3 The couple sold an old farmhouse after they had renovated it themselves.
3 The couple bought an old farmhouse and had it renovated by a firm.
2 The couple spend their holidays in an old farmhouse.
2 A couple from the city rents the house next to the farmhouse.
1 Builders are putting up a block of flats next to the harbour.

# politics

5 The council {voted|decided} to build a new swimming pool.
5 A new swimming pool will be built, the council has decided.
5 Councillors voted {for|in favour of} the construction of a new swimming pool.
5 By a vote, the council gave the go-ahead for a new pool to swim in.
4 On Monday night the council voted to build a new swimming pool.
4 The council voted narrowly to build a new outdoor swimming pool.
3 The council voted against building a new swimming pool.
3 The council voted to build a new library.
3 The council voted to close the new swimming pool.
2 The council will raise ticket prices at the swimming pool.
2 A councillor fell into the new swimming pool at the party.
1 Voters in the district want more of a say in planning.

5 The mayor {resigned|stepped down} after a dispute over the budget.
5 A dispute over the budget led the mayor to {step down|resign}.
5 Following a row about the budget, the mayor gave up his post.
5 The mayor quit because of an argument about the budget.
4 The mayor resigned on Tuesday after a dispute over the budget.
4 The popular mayor resigned after a long dispute over the budget.
3 The mayor stayed in office after a dispute over the budget.
3 The mayor resigned after a dispute over his marriage.
3 The treasurer resigned after a dispute over the budget.
2 The mayor presented the budget to a full hall.
2 The mayor opened the new market hall on Tuesday.
1 Two parties agreed to form a coalition after weeks of talks.

5 Turnout in the election was {higher|greater} than four years ago.
5 More people voted in the election than four years {ago|earlier}.
5 Compared with four years ago, a larger share of voters took part in the election.
5 Four years ago, fewer voters went to the polls than in this election.
4 Turnout in the local election was higher than four years ago.
4 Turnout in the election was slightly higher than four years ago.
3 Turnout in the election was lower than four years ago.
3 Turnout in the election was the same as four years ago.
3 Spending on the election was higher than four years ago.
2 The election takes place every four years in May.
2 The results of the election will come in before midnight.
1 The senator is campaigning in small towns by bus.

5 Thousands {marched|demonstrated} through the capital against the new tax.
5 In the capital, thousands of people protested against the new tax with a {march|protest march}.
5 The new tax drew thousands onto the streets of the capital in protest.
5 A march against the new tax brought out thousands of people in the capital.
4 Thousands marched peacefully through the capital against the new tax.
4 On Saturday, thousands marched through the capital against the new fuel tax.
3 Thousands marched through the capital in support of the new tax.
3 Dozens marched through the capital against the new tax.
3 Thousands marched through the capital against the new dam.
2 The government says that the new tax will raise billions.
2 Thousands watched the president's speech in the capital.
1 Parliament debated a bill on data privacy until midnight.

5 The minister {denied|rejected claims} that she had met the lobbyists.
5 According to the minister, she did not meet the lobbyists.
5 The minister said it was {not true|untrue} that she had met with lobbyists.
5 Claims of a meeting with the lobbyists were denied by the minister.
4 The minister denied that she had met the lobbyists in June.
4 The finance minister firmly denied that she had met the lobbyists.
3 The minister admitted that she had met the lobbyists.
3 The minister denied that she had paid the lobbyists.
3 The minister denied that she had met the rebels.
2 The minister wants a public list of all lobbyists.
2 Lobbyists sent the minister a letter about sugar.
1 The ambassador was called home for talks.
"""
