"""Hand-written scenes for the test pairs (topics that the other splits do not use); see `make_pairs.parse_scenes`."""

TEST_SCENES = """
# space

5 The rocket {exploded|blew up} two minutes after launch.
5 Two minutes after {liftoff|launch}, the rocket blew up.
5 The rocket had been in the air for two minutes when it exploded.
5 An explosion destroyed the rocket when only two minutes had passed since it took off.
4 The unmanned rocket exploded two minutes after launch.
4 The rocket exploded about two minutes after launch on Wednesday.
3 The rocket exploded two minutes before launch.
3 The rocket reached orbit two minutes after launch.
3 The rocket exploded two years after launch.
2 The launch of the rocket was put off because of wind.
2 The rocket carries a telescope and two small satellites.
1 The probe sent back its first pictures of Saturn's rings.

5 Astronomers have {discovered|found} a planet that orbits two suns.
5 A planet orbiting two suns has been {discovered|found} by astronomers.
5 Researchers who study the sky have found a planet which circles a pair of stars.
5 Astronomers report the discovery of a planet with two suns to go around.
4 Astronomers have discovered a small planet that orbits two suns.
4 Astronomers in Chile have discovered a distant planet that orbits two suns.
3 Astronomers have discovered a comet that orbits two suns.
3 Astronomers doubt that there is a planet that orbits two suns.
3 Astronomers have discovered a planet that orbits no sun at all.
2 Astronomers have given the planet the name of a goddess.
2 Astronomers took a photo of a planet with rings.
1 A meteor lit up the night sky over the desert.

5 The astronauts {spent|passed} six hours outside the station to repair an antenna.
5 To {repair|fix} an antenna, the astronauts worked outside the station for six hours.
5 Repairing an antenna kept the astronauts outside the station for six hours.
5 It took the astronauts a six-hour spacewalk to get the station's antenna fixed.
4 The astronauts spent almost six hours outside the station to repair an antenna.
4 The two astronauts spent six hours outside the station to repair a small antenna.
3 The astronauts spent six hours outside the station without being able to repair an antenna.
3 The astronauts spent six hours inside the station to repair an antenna.
3 The robot spent six hours outside the station to repair an antenna.
2 The astronauts grow lettuce and peas on the station.
2 The antenna on the station sends films to Earth.
1 Tourists will soon be able to fly around the Moon.

5 Is it safe to look at a partial solar {eclipse|eclipse of the sun} through sunglasses?
5 Can I watch a partial eclipse of the sun with sunglasses on without {hurting|harming} my eyes?
5 Do sunglasses protect your eyes well enough when you look at a partial solar eclipse?
5 Are my eyes safe if sunglasses are all I wear while watching a partial eclipse of the sun?
4 Is it safe to look briefly at a partial solar eclipse through dark sunglasses?
4 Is it safe for children to look at a partial solar eclipse through sunglasses?
3 Is it safe to look at a partial lunar eclipse through sunglasses?
3 Is it safe to look at a partial solar eclipse through a telescope?
3 Is it illegal to look at a partial solar eclipse through sunglasses?
2 When is the next solar eclipse in Spain?
2 Where can I buy cheap sunglasses for the eclipse party?
1 Which stars can you see with cheap binoculars?

# work

5 The company will {cut|eliminate} 300 jobs at its headquarters.
5 At the company's {headquarters|head office}, 300 jobs are to be cut.
5 Three hundred people will lose their jobs at the head office of the company.
5 The firm plans to get rid of 300 positions at its headquarters.
4 The company will cut about 300 jobs at its headquarters.
4 The Swedish company will cut 300 jobs at its headquarters by autumn.
3 The company will create 300 jobs at its headquarters.
3 The company will cut three jobs at its headquarters.
3 The company will cut 300 jobs at its foreign plants, but none at its headquarters.
2 The company will move its headquarters to Dublin.
2 The company gave 300 of its workers a bonus.
1 The union and the airline agreed on a new contract for pilots.

5 Employees may work from home {two days a week|on two days a week}.
5 Staff are {allowed|permitted} to work from home twice a week.
5 Working from home is permitted for employees on two days of each week.
5 Two days a week, members of staff can do their jobs at home.
4 Employees in sales may work from home two days a week.
4 Employees may work from home two days a week if their boss agrees.
3 Employees may not work from home during the week.
3 Employees must work from home two days a week.
3 Employees may leave at noon two days a week.
2 Employees get a better chair if they work from home.
2 Employees who work from home miss their colleagues.
1 The team meets every Monday to plan the week.

5 My boss has not {answered|replied to} my request for a pay rise.
5 My request for higher pay has not been {answered|replied to} by my boss.
5 I asked for a raise, but my boss has not given me an answer.
5 There's been no reply from my boss since I asked to be paid more.
4 My boss has still not answered my second request for a pay rise.
4 My boss has not answered my written request for a small pay rise.
3 My boss has agreed to my request for a pay rise.
3 My boss has turned down my request for a pay rise.
3 My boss has not answered my request for a transfer.
2 My boss wants me to take over the team in June.
2 The union requests a pay rise for all drivers.
1 I share an office with two very loud colleagues.

5 Please {send|submit} your application as one file by the end of March.
5 Applications are to be {submitted|sent} in a single file no later than the end of March.
5 Your application has to reach us by 31 March, all in one file.
5 The deadline for sending in an application, as a single file, is the last day of March.
4 Please send your full application as one file by the middle of March.
4 Please send your application by email, as one file, by the end of March.
3 Please send your application as one file after the end of March.
3 Please send your invoice as one file by the end of March.
3 Please do not send your application as one file, but on paper by the end of March.
2 Please bring a photo and your application to the interview.
2 You will get an answer to your application after the end of March.
1 The job advert asks for three years of experience in sales.

# arts

5 The museum {bought|acquired} a painting by an unknown artist for two million dollars.
5 For two million dollars, a work by an unknown painter was {bought|purchased} by the museum.
5 The museum paid $2 million for a painting whose artist is unknown.
5 Two million dollars is what the museum spent on a picture painted by an unknown hand.
4 The museum bought a large painting by an unknown artist for two million dollars.
4 The museum in Boston bought a painting by an unknown artist for nearly two million dollars.
3 The museum sold a painting by an unknown artist for two million dollars.
3 The museum bought a painting by a famous artist for two million dollars.
3 The museum bought a painting by an unknown artist for two dollars.
2 The museum shows sketches by an unknown artist.
2 Visitors gave the museum two million dollars for a new wing.
1 The gallery dims its lights to protect old drawings.

5 The film {won|received} the award for best costumes, not for best picture.
5 The movie got the prize for best costumes but {missed out on|did not get} best picture.
5 It was for its costumes, rather than as best picture, that the film was given an award.
5 While best picture went to another film, this one took the award for the best costumes.
4 The Polish film won the award for best costumes, not for best picture.
4 On Sunday the film won the award for best costumes, not for best picture.
3 The film won the award for best picture, not for best costumes.
3 The film won the awards for best costumes and for best picture.
3 The film won the award for best music, not for best picture.
2 The costumes from the film were sold at an auction.
2 The film was shot in eleven days with no money.
1 The actor is learning to ride for his next role.

5 A girl in a yellow raincoat is {drawing|sketching} a statue in the museum.
5 In the museum, a statue is being {sketched|drawn} by a girl in a yellow raincoat.
5 A girl wearing a yellow raincoat makes a sketch of a museum's statue.
5 A girl, dressed in a yellow raincoat, is in the museum making a drawing of a statue.
4 A girl in a green raincoat is drawing a statue in the museum.
4 A girl in a yellow raincoat is drawing a marble statue in the museum.
3 A girl in a yellow raincoat is climbing a statue in the museum.
3 A girl in a yellow raincoat is drawing a skeleton in the museum.
3 An old man in a yellow raincoat is drawing a statue in the museum.
2 A girl in a yellow raincoat is waiting for the museum to open.
2 A guard dusts a statue in the museum.
1 A man with a camera takes pictures of a ballet dancer.

5 The novel is being {made|turned} into a television series with eight parts.
5 A television series in eight parts is being {made|produced} from the novel.
5 The book will come to TV as a series of eight episodes.
5 An eight-episode TV adaptation of the novel is in the making.
4 The novel is being made into a British television series with eight parts.
4 The popular novel is being made into a television series with nine parts.
3 The novel is being made into a stage play with eight parts.
3 The plan to make the novel into a television series with eight parts has been dropped.
3 The novel is based on a television series with eight parts.
2 The novel has sold eight million copies so far.
2 The author of the novel does not own a television.
1 The poet reads from her latest book at the festival.

# outdoors

5 A surfer is {riding|surfing} a huge wave at sunset.
5 At sunset, a huge wave is being ridden by a surfer.
5 As the sun goes down, a surfer {rides|glides along} an enormous wave.
5 The setting sun lights up a surfer on an enormous wave.
4 A surfer is riding a wave at sunset.
4 A surfer in a black wetsuit is riding a huge wave at sunset.
3 A surfer is falling off a huge wave at sunset.
3 A surfer is waiting for a huge wave at sunset.
3 A pelican is riding a huge wave at sunset.
2 A surfer rubs wax on her board at sunset.
2 Huge waves have washed sand from the beach.
1 Two kayakers paddle through a narrow canyon.

5 The hikers were {rescued|saved} by helicopter after they lost the path in the dark.
5 A helicopter {rescued|saved} the hikers, who had lost their way in the dark.
5 Having strayed from the path in the darkness, the hikers had to be rescued by helicopter.
5 It took a helicopter to save the hikers once they had gone off the path in the dark.
4 The four hikers were rescued by helicopter after they lost the path in the dark.
4 The hikers were rescued by an army helicopter after they lost the steep path in the dark.
3 The hikers found their own way down after they lost the path in the dark.
3 The hikers were rescued by helicopter after they were bitten by a snake.
3 The dogs were rescued by helicopter after they lost the path in the dark.
2 The hikers took photos of a helicopter above the lake.
2 The hikers marked the path with piles of stones.
1 A mountain guide teaches a group of teenagers to climb.

5 Which tent is {light|lightweight} enough to carry on a bike for a week?
5 I'm looking for a tent so light that I can {carry|take} it on my bike for a week.
5 For a week's cycling trip, what tent would not be too heavy to take on the bike?
5 Can you recommend a tent that weighs little enough for a week of travel by bicycle?
4 Which two-person tent is light enough to carry on a bike for a week?
4 Which tent is light enough to carry on a bike for a long weekend?
3 Which tent is large enough to put a bike in for a week?
3 Which stove is light enough to carry on a bike for a week?
3 Why is no tent light enough to carry on a bike for a week?
2 My tent got wet and smells after a week in the cellar.
2 Which lock do you carry on a bike trip?
1 What do you put in a backpack for a night in the woods?

5 Swimming in the lake is {forbidden|prohibited} until the water is clean again.
5 Until the water is clean again, nobody is {allowed|permitted} to swim in the lake.
5 People may not bathe in the lake as long as its water is still dirty.
5 The ban on swimming in the lake stays in place until its water is no longer dirty.
4 Swimming in the northern part of the lake is forbidden until the water is clean again.
4 Swimming in the lake is forbidden for a few days, until the water is clean again.
3 Swimming in the lake is allowed, now that the water is clean again.
3 Fishing in the lake is forbidden until the water is clean again.
3 Swimming in the lake is forbidden until the school holidays are over.
2 The water in the lake is two degrees warmer than in May.
2 A boy swam across the lake in forty minutes.
1 Families have a picnic on the sand by the river.
"""
