import type { LabelledPair } from './labelled-pairs.ts';

type Messages = readonly (readonly [message: string, related: string | undefined, ...unrelated: string[]])[];

/** Messages of 80 words and more. The first memory helps with the message, the others share words with it by chance. */
const longMessages: Messages = [
  [
    `I have to plan the next two weeks and I keep forgetting things, so please make me a list that I can print. On Monday the plumber comes at eight and somebody has to be here. On Tuesday my sister arrives by train and stays until Friday; she sleeps in the small room, which I have to clear first. My dentist appointment is in one of the two weeks as well, I do not know the day any more. The children need new shoes before the trip, and the library books must go back. Put the things with a fixed time first.`,
    'The dentist appointment is on 14 March at nine.',
    'The team meets on Monday morning and talks about open tickets',
    'A new passport takes about six weeks',
  ],
  [
    `Could you review the following pull request description? We changed how the parser reads numbers so that an open bracket at the end of a line no longer makes the whole file fail. The new tests run every night on the build machine, and the team wants to merge before the end of the week. The first version had problems with long lines: it took six seconds for one file. The second version starts two workers, talks to them over a pipe and needs far less memory. Please keep the answer short, name the function in question, and say whether the change of the second argument is a problem for users of the old interface.`,
    undefined,
    'The backup server is in the cellar and starts every night at two',
    'The user has an open ticket with the insurance about the water damage',
    'Anna is the new head of the sales team since March',
  ],
  [
    `We are going away for three weeks in July and I want to write one page for the people who look after the house. Please turn these notes into friendly instructions. The cat eats twice a day, dry food in the morning and half a can in the evening; her carrier stands in the hall. Orchids in the living room need water, but I never remember how often. Post goes into the drawer under the telephone. If the heating makes noises, switch it off at the red button and call us. The bins are emptied on Thursdays, paper only every second week.`,
    'Orchids want water once a week.',
    'The garden needs water every morning in summer',
    'The user likes to go hiking in the mountains with his two children',
    'The coffee machine in the office makes problems with hard water',
  ],
  [
    `I am writing a short story about a captain who has not seen land for six months. Every morning he looks at the water and talks to the machine in the cellar of the ship, which makes hard noises. At the end of the first chapter the last letter of his daughter is found in a box. Two children of the crew take it and read it in the night. Please write the opening of the second chapter in the same style, about three hundred words long.`,
    undefined,
    'The neighbour takes the letters out of the box during holidays',
    'The backup server is in the cellar and starts every night at two',
    'The dentist appointment is every six months, the last time was in May',
  ],
  [
    `Our website was down twice this week and my boss wants a written explanation by tomorrow. What I know so far: on Tuesday somebody pushed a change of the shop page and afterwards the pictures were missing, and on Thursday the certificate had run out and nobody got a warning. I also want to propose that we deploy the website in a calmer way, with a check by a second person and a way back. Draft the explanation for people who are not technicians, at most one page, without blaming anybody, and finish with three measures, each with somebody responsible and a date.`,
    'Deploy the website by pushing to the main branch.',
    'Bills are paid from the second bank account at the end of each month',
    'Who gets the keys of the second cellar is decided by the landlord',
  ],
  [
    `Explain to me how a heat pump works in winter. I understand that it takes heat out of the air and that the machine needs electricity, but what happens at the end of the cycle, when the water is cold and the compressor starts again every few minutes? Does the time between two starts make problems for the hard parts? A new one costs as much as a small car, so I want to know about how long it lasts, and whether six years is a good number.`,
    undefined,
    'The coffee machine in the office makes problems with hard water',
    'The car needs winter tires before the end of November',
    'A new passport takes about six weeks',
  ],
  [
    `Please help me with a message to the family group. We meet on the last weekend of the month at the lake, eleven adults and six children, and I promised to organise the food. On Saturday there is a barbecue, on Sunday a long breakfast. Remember that Tom is allergic to something, look it up before you suggest any salad or cake, and that two of us eat no meat. Everybody should bring one thing, nobody should bring the same, and the drinks are ordered by my brother. Write it so that the older ones understand who brings what, and ask for an answer until Wednesday.`,
    'Tom is allergic to nuts and sesame.',
    'The team meets on Monday morning and talks about open tickets',
    'Grandmother has her birthday in the first week of June',
  ],
  [
    `Translate this into German: The new museum opens its doors on Monday. In the first week visitors pay nothing and the team of guides talks about every picture. The tour takes about two hours and starts each morning at nine. Children get a small box with pencils. At the end of the month there is a second opening with music, and the head of the city council gives a short speech. Whoever cannot climb the stairs finds a lift next to the entrance, and dogs have to wait outside.`,
    undefined,
    'The team meets on Monday morning and talks about open tickets',
    'Anna is the new head of the sales team since March',
    'The neighbour takes the letters out of the box during holidays',
  ],
  [
    `I need to decide between two offers and want you to play the devil's advocate. The first company pays more, but the office is an hour away and they expect me there four days. The second one is near, lets me work from home, and the people seemed kind, yet they have had three managers in two years. My mortgage runs for another eleven years, and the bank wants a safe income when the rate is fixed anew. My partner thinks that money is not the point. List the strongest arguments against each of the offers, then tell me which questions I should put to both before I sign anything.`,
    'The mortgage is held by a bank in Zurich.',
    'Bills are paid from the second bank account at the end of each month',
    'The user prefers short answers and works from home on Fridays',
  ],
  [
    `Here is my Python traceback: TypeError: unsupported operand type(s) for +: 'int' and 'str' at line 42 in total = total + row['amount']. The csv file has two columns, name and amount, and the last line is empty. The first rows work. What do I need to change, and is there a short way to skip the empty line at the end? I tried to convert the value, but then the empty line fails with another message, and I would like to keep the loop as it is because others read the code too and like it simple.`,
    undefined,
    'The user prefers short answers and works from home on Fridays',
    'The name of the second parent is missing on the school form',
    'The dentist appointment is every six months, the last time was in May',
  ],
  [
    `Good evening, I would like to bake on Saturday and have most of the things at home. There are two kilos of rye flour, one of wheat, a jar of sourdough that I have fed for a week, sunflower seeds and honey. I want a dark bread that stays fresh for some days, with a hard crust, and something sweet for the afternoon out of the same dough if that is possible. My oven is old and heats from below only. Write me a plan with times that begins on Friday evening, how hot the oven must be for the bread in each phase, and what I can prepare before.`,
    'For bread the oven must reach 240 degrees.',
    'The user likes to go hiking in the mountains with his two children',
    'The wifi password for guests changes every month',
  ],
  [
    `This library gives you a simple way to read and write streams of records. It was written because the older packages keep the whole file in memory, which fails as soon as the file is larger than the machine has room for. Records are parsed in the background, one block after the other, and handed over in their order. If the reader is slower than the parser, the parser waits. Errors carry the line and the column in which they happened. The package has no dependencies and is tested on each supported version before every release. Contributions are welcome: please open an issue first, and describe what you need it for.`,
    undefined,
    'The user has an open ticket with the insurance about the water damage',
    'The car needs winter tires before the end of November',
    'Which room the parents have is written on the back of the ticket',
  ],
  [
    `My landlord has sent a letter that I do not understand, and I am angry enough to write something stupid, so help me to stay polite. He writes that the heating boiler in our house has to be replaced because the inspector found its exhaust too hot, that this takes nine days in October, and that the rent rises by eight per cent afterwards. In these nine days we would have no warm water. I think that he has to offer us something for that time and that a rise after a repair is not allowed, only after an improvement. Ask him to explain the reason, the dates and the sum, and to name the firm that fixes it.`,
    'The heating boiler was last fixed by a plumber from Kiel.',
    'The user has an open ticket with the insurance about the water damage',
    'A new passport takes about six weeks',
  ],
  [
    `Permission is granted to anybody who gets a copy of this work to use it, to change it and to hand it on, for money or without, as long as the name of the author and this text stay in every copy. The work is given as it is: nobody promises that it does what you want, or that it is free of faults, and nobody pays for damage that comes out of its use, whether it was known before or not. If one part of this text has no force where you live, the other parts keep theirs. Names and signs of the author may not be used to sell other works without a letter that allows it.`,
    undefined,
    'The user has an open ticket with the insurance about the water damage',
    'The neighbour takes the letters out of the box during holidays',
    'The head of the works council parks in the second row',
  ],
  [
    `I teach a class of nine-year-olds and next month is about the sea. Give me ideas for eight lessons of forty-five minutes. We have a projector, paints, a large tank without fish, and a mother who works as a diver and would visit us. Some of the children have never seen the coast, two speak little German yet. At the end there is an excursion: we take the ferry in the harbour to the island, look at the seals and come back in the afternoon. I need to know when the ferry leaves, so that the buses can be ordered, and I want every lesson to prepare one thing that they will see on that day.`,
    'The ferry leaves the harbour at six.',
    'Grandmother has her birthday in the first week of June',
    'The coffee machine in the office makes problems with hard water',
  ],
  [
    `Summarise the minutes below in five points. The chair opened the meeting at seven and thanked everybody for coming on a rainy night. The accounts of last year were read and accepted with one voice against. A new fence along the playground will cost four thousand; two offers are in, a third is expected in May. The youth group asked for keys to the hall on Wednesdays, which was put off until the insurance has answered. Three members left, five joined. The summer party is moved to the second Saturday in July because of the road works. Next meeting in September, place to be announced by letter to all the members and their families.`,
    undefined,
    'The dentist appointment is every six months, the last time was in May',
    'The team meets on Monday morning and talks about open tickets',
    'The user has an open ticket with the insurance about the water damage',
  ],
];

/** Written after the scores were tuned. */
const lateMessages: Messages = [
  [
    `I promised to repair the bicycle of my daughter before the tour on Sunday and have never done anything but pump air into it. The rear tyre has a crack and looks worn, the chain jumps in the highest gear, and the front lamp only works when I shake it. There is a shop in the next village, but it closes at noon. Tell me which of the three I can do on my own with ordinary tools, in which order, and write a shopping list with the exact size of everything that I have to buy, so that I go there only once. If the bicycle needs other tyres than those in the shop, say what to look for.`,
    'The bicycle needs tyres of 28 inches.',
    'The car needs winter tires before the end of November',
    'The library closes at two on Saturday.',
  ],
  [
    `The old town had two gates, one in the north and one near the river, and between them lay a market where farmers sold corn, wool and pots. In the winter of 1709 the river froze for eleven weeks, the mills stood still, and bread became so dear that the council had the stores opened. A letter of a merchant tells that people burned their chairs. When the ice broke in March it took the bridge along, and for six years a boat carried everybody across. The children of that time were later called the short ones, because so many had gone hungry. Rewrite this for readers of twelve years.`,
    undefined,
    'The user likes to go hiking in the mountains with his two children',
    'For bread the oven must reach 240 degrees.',
    'The neighbour takes the letters out of the box during holidays',
  ],
  [
    `Our puppy has been with us for a month now and turns the house upside down. He chews on everything, mostly on cables and on the left shoe of my son, sleeps badly when it rains and barks at the vacuum cleaner. On walks he pulls, with other dogs he is friendly but wild. Next week we see the vet, and I would like to go there with a good list of questions: about food, about when he gets which vaccination, what else a puppy needs in the first half year, and what it may cost. After that, propose a daily plan with short exercises which the children can do with him too.`,
    'The puppy got its vaccination in week nine.',
    'The user has an open ticket with the insurance about the water damage',
    'The user likes to go hiking in the mountains with his two children',
  ],
  [
    `Write a function that takes a list of events and gives back the free slots of a day. Each event has a start and an end in minutes, they may overlap, and they are not sorted. The day begins at eight and ends at six, lunch from twelve to one counts as taken. A slot shorter than a quarter of an hour is of no use. The function is called for some thousand calendars at once, so it should not copy the list more often than it must. Please add tests for an empty day, for a day that is full, for events that touch each other and for one that lasts the whole night.`,
    undefined,
    'The team meets on Monday morning and talks about open tickets',
    'The backup server is in the cellar and starts every night at two',
    'The dentist appointment is every six months, the last time was in May',
  ],
];

/** Messages of one to four words. */
const shortRelated: readonly (readonly [question: string, memory: string])[] = [
  ['Dentist?', 'The dentist appointment is on 14 March at nine.'],
  ['Wifi password?', 'The wifi password for guests changes every month'],
  ['Which winter tires?', 'The car needs winter tires before the end of November'],
  ["Grandmother's birthday?", 'Grandmother has her birthday in the first week of June'],
  ['Where is the mortgage?', 'The mortgage is held by a bank in Zurich.'],
  ['Coffee machine', 'The coffee machine in the office makes problems with hard water'],
  ['Backup server time?', 'The backup server is in the cellar and starts every night at two'],
  ['Passport', 'A new passport takes about six weeks'],
];
const shortUnrelated: readonly (readonly [question: string, memory: string])[] = [
  ['What time is it?', 'The dentist appointment is every six months, the last time was in May'],
  ['What is new?', 'A new passport takes about six weeks'],
  ['Is it open?', 'The user has an open ticket with the insurance about the water damage'],
  ['Could you start?', 'The backup server is in the cellar and starts every night at two'],
  ['Good morning!', 'The garden needs water every morning in summer'],
  ['How is work?', 'The user prefers short answers and works from home on Fridays'],
  ['Who is first?', 'Grandmother has her birthday in the first week of June'],
  ['And the end?', 'Bills are paid from the second bank account at the end of each month'],
  ['Why is that?', 'Why the cellar was flooded is not known'],
  ['Make it short', 'The user prefers short answers and works from home on Fridays'],
  ['What is needed?', 'The garden needs water every morning in summer'],
  ['Use the second one', 'Bills are paid from the second bank account at the end of each month'],
  ['Give an answer', 'The user prefers short answers and works from home on Fridays'],
  ['Say it again', 'The vet said the dog must lose two kilos.'],
  ['Was ist das?', 'Das Auto ist am Flughafen geparkt, es war kalt'],
  ['Qu’est-ce que c’est ?', 'Le chat est dans la cuisine, c’est que la porte est fermée'],
  ['Any problem?', 'The coffee machine in the office makes problems with hard water'],
  ['How many days?', 'The wifi works on all days but Sunday'],
];

const pairsOf = (messages: Messages): readonly LabelledPair[] =>
  messages.flatMap(([question, related, ...unrelated]) => [
    ...(related === undefined ? [] : [{ question, memory: related, related: true }]),
    ...unrelated.map((memory) => ({ question, memory, related: false })),
  ]);

/** Pairs with long messages, 8 related and 41 unrelated, and pairs with very short ones, 8 related and 18 unrelated. */
export const longAndShortPairs: readonly LabelledPair[] = [
  ...pairsOf(longMessages),
  ...shortRelated.map(([question, memory]) => ({ question, memory, related: true })),
  ...shortUnrelated.map(([question, memory]) => ({ question, memory, related: false })),
];
/** Never used for tuning: 2 related and 10 unrelated. */
export const latePairs: readonly LabelledPair[] = pairsOf(lateMessages);
