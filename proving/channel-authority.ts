import type { TelegramPerson } from '@gatehouse/testkit';
import { type Act, acts, type Verdict, type Voice } from './lib/authority-acts.ts';
import { type Speech, startWorld, type World } from './lib/authority-world.ts';
import { nonceOf } from './lib/provider.ts';

/** An author in a chat, and the authority of the text there; `unseen`: no turn begins. */
interface Origin extends Speech {
  readonly name: string;
  readonly voice: Voice | 'unseen';
  /** May choose the agent of the conversation. */
  readonly chooses?: true;
  /** The owner who decides there, and another member. */
  readonly owner?: TelegramPerson;
  readonly other?: TelegramPerson;
}

let lastId = 1_000;
const person = (name: string, more: Partial<TelegramPerson> = {}): TelegramPerson => ({ id: (lastId += 1), first_name: name, ...more });
const [olga, otto, oda, orla, ole, ora] = ['Olga', 'Otto', 'Oda', 'Orla', 'Ole', 'Ora'].map((name) => person(name)) as Sextet;
type Sextet = [TelegramPerson, TelegramPerson, TelegramPerson, TelegramPerson, TelegramPerson, TelegramPerson];
const ownerBot = person('Oxo', { is_bot: true });
const owners = [olga, otto, oda, orla, ole, ora, ownerBot];
const [ada, ann, amy, eve] = ['Ada', 'Ann', 'Amy', 'Eve'].map((name) => person(name)) as [
  TelegramPerson,
  TelegramPerson,
  TelegramPerson,
  TelegramPerson,
];
const paired = [ada, ann, amy];

/** Each has its own person, who may write thirty messages a minute, and its own group: what was said in one counts for what follows there. */
const origins: readonly Origin[] = [
  { name: 'an owner, directly', voice: 'owner', bot: 'gate', from: olga, owner: olga, chooses: true },
  { name: 'an owner in a group', voice: 'owner', bot: 'gate', from: otto, group: -101, owner: otto, chooses: true },
  { name: 'an owner in a group after somebody else', voice: 'outside', bot: 'gate', from: oda, group: -102, owner: oda, other: eve, chooses: true },
  { name: 'an owner who forwards', voice: 'outside', bot: 'gate', from: orla, isForwarded: true, owner: orla },
  { name: 'a paired person, directly', voice: 'outside', bot: 'gate', from: ada, chooses: true },
  { name: 'a paired person in a group', voice: 'guest', bot: 'gate', from: ann, group: -103 },
  { name: "a paired person, on another agent's channel", voice: 'guest', bot: 'open', from: amy },
  { name: "an owner, on another agent's channel", voice: 'guest', bot: 'open', from: ole },
  { name: 'anybody, directly on an open channel', voice: 'guest', bot: 'open', from: person('Sam') },
  { name: 'anybody in a group', voice: 'guest', bot: 'gate', from: person('Sue'), group: -104 },
  { name: 'a bot', voice: 'guest', bot: 'gate', from: person('Helper', { is_bot: true }), group: -105 },
  { name: 'a bot with the id of an owner', voice: 'guest', bot: 'gate', from: ownerBot, group: -106 },
  { name: 'somebody unknown, directly', voice: 'unseen', bot: 'gate', from: person('Stan') },
  { name: 'an owner without a mention', voice: 'unseen', bot: 'gate', from: ora, group: -107, isUnmentioned: true },
  { name: 'anybody without a mention', voice: 'unseen', bot: 'gate', from: person('Una'), group: -108, isUnmentioned: true },
];

/** A bot is answered three times a minute. */
const actsOfBots = 3;

export interface AuthorityReport {
  /** Cells of who, where and what, by their verdict. */
  readonly cells: Readonly<Record<string, number>>;
  /** Approvals that somebody who may not tried to give with the right code. */
  readonly tries: number;
  readonly wrong: readonly string[];
}

export interface AuthorityOptions {
  readonly broken?: string;
  /** Names; all when absent. */
  readonly origins?: readonly string[];
  readonly acts?: readonly string[];
  readonly patienceMs?: number;
  readonly progress?: (line: string) => void;
}

/** Has each author ask for each act: it has its effect, waits for an owner whom nobody else replaces, or has none. */
export async function proveChannelAuthority(options: AuthorityOptions = {}): Promise<AuthorityReport> {
  const { broken, patienceMs, progress } = options;
  const played = origins.filter(({ name }) => options.origins?.includes(name) ?? true);
  const wanted = acts.filter(({ name }) => options.acts?.includes(name) ?? true);
  const groups = new Map(
    played.flatMap(({ group, from, other }) => (group === undefined ? [] : [[group, other === undefined ? [from] : [from, other]]])),
  );
  await using world = await startWorld({ broken, owners, groups, patienceMs });
  for (const one of paired) if (one === amy || played.some(({ from }) => from === one)) await world.pair(one);
  for (const { bot, group, other: from } of played)
    if (from !== undefined) {
      world.say({ bot, group, from }, 'hello there');
      await world.wait(async () => world.hasEnded(await world.rowOf({ bot, from }, 'hello there')), 'not answered');
    }
  const cells: Record<string, number> = {};
  const wrong: string[] = [];
  if (wanted.some(({ effect }) => effect === 'known') && !(await world.knowsSecret())) wrong.push('the secret of somebody is not found by its owner');
  let tries = 0;
  const playAll = async (place: Origin) => {
    for (const [index, act] of wanted.slice(0, place.from.is_bot === true ? actsOfBots : undefined).entries()) {
      const cell = `${place.name}: ${act.name}`;
      const expected = expectedOf(place, act);
      try {
        const mark = nonceOf([origins.indexOf(place), index]);
        const { verdict, findings, tried, result } = await play(world, place, act, mark);
        tries += tried;
        cells[verdict] = (cells[verdict] ?? 0) + 1;
        if (verdict !== expected) wrong.push(`${cell}: ${verdict}, expected ${expected}; result: ${result}`);
        wrong.push(...findings.map((finding) => `${cell}: ${finding}`));
        progress?.(`${cell}: ${verdict}`);
        if (act.effect !== 'job' || (verdict !== 'done' && verdict !== 'asks')) continue;
        const later = await runJob(world, place, mark);
        if (later !== expected) wrong.push(`${place.name}: the command of a job, when it runs: ${later}, expected ${expected}`);
        cells[later] = (cells[later] ?? 0) + 1;
      } catch (error) {
        wrong.push(`${cell}: ${String(error)}`);
      }
    }
  };
  await Promise.all(played.filter(({ voice }) => voice !== 'outside').map(playAll));
  // An approved command is refused when the workspace changes meanwhile.
  for (const place of played.filter(({ voice }) => voice === 'outside')) await playAll(place);
  return { cells, tries, wrong };
}

function expectedOf({ voice, chooses }: Origin, { expected }: Act): Verdict | 'unseen' {
  if (voice === 'unseen') return 'unseen';
  return expected === 'choice' ? (chooses === true ? 'done' : 'refused') : expected[voice];
}

/** Runs a job, whose turn makes a command: it has no more authority than the words that the job is made of. */
async function runJob(world: World, place: Origin, mark: string): Promise<Verdict> {
  await world.call('cron.run', { jobName: mark, mode: 'force' });
  const hasRun = () => world.model.results.has(`exec ${mark}`);
  await world.wait(async () => hasRun() || (await world.requestOf(place, mark)) !== undefined, 'a job did not run');
  const requestId = await world.requestOf(place, mark);
  const isDone = () => world.isDone({ effect: 'file' }, mark, place);
  if (requestId === undefined) return (await isDone()) ? 'done' : 'refused';
  const early = await isDone();
  await world.call('admin.approval.resolve', { requestId, approved: true });
  await world.wait(async () => hasRun(), 'a job did not end after the decision');
  return early ? 'done' : (await isDone()) ? 'asks' : 'asks in vain';
}

interface Played {
  readonly verdict: Verdict | 'unseen';
  readonly findings: readonly string[];
  readonly tried: number;
  readonly result?: string | undefined;
}

/** Returns who may not decide about a request of a place, and whether it is a command when they try. */
function othersAt({ bot, from, group, owner, other }: Origin): readonly (readonly [Speech, isCommand: boolean])[] {
  const elsewhere: readonly (readonly [Speech, boolean])[] = [
    // The code is of another chat.
    [{ bot: 'gate', from: ora }, true],
    [{ bot: 'gate', from: amy }, true],
    [{ bot: 'open', from: person('Tess') }, true],
  ];
  const own: readonly (readonly [Speech, boolean])[] =
    owner === undefined ? [[{ bot, group, from }, true]] : [[{ bot, group, from: owner, isForwarded: true }, false]];
  const there: readonly (readonly [Speech, boolean])[] =
    other === undefined
      ? []
      : [
          [{ bot, group, from: other }, true],
          [{ bot, group, from: ownerBot }, false],
        ];
  return [...elsewhere, ...own, ...there];
}

/** Has an act asked for, and decides about it when it waits for that. */
async function play(world: World, place: Origin, act: Act, mark_: string): Promise<Played> {
  const { bot, group, owner } = place;
  const mark = act.command ?? mark_;
  const findings: string[] = [];
  const isDone = () => world.isDone(act, mark, place);
  const requestOf = () => world.requestOf(place, mark);
  const resultOf = (tool = '') => world.model.results.get(`${tool} ${mark}`);
  const begins = () => act.last !== undefined && /has started|waiting for a slot|"graphId"/.test(resultOf(act.tool) ?? '');
  const hasEnded = async () => world.hasEnded(await world.rowOf(place, mark)) && (!begins() || resultOf(act.last) !== undefined);
  const isUnseen = async () => world.hasTaken(place) && (await world.rowOf(place, mark))?.verdict !== 'turn';

  world.say(place, act.command ?? `${mark} ${act.text(mark, { ...world.about, chatId: group ?? place.from.id })}`);
  let unseen = false;
  await world.wait(
    async () => (unseen = await isUnseen()) || (await requestOf()) !== undefined || (await hasEnded()),
    'neither done, asked about nor refused',
  );
  if (unseen) {
    if (world.model.seen.has(mark) || (await isDone())) findings.push('reached the agent');
    return { verdict: 'unseen', findings, tried: 0 };
  }
  const request = await requestOf();
  const result = () => resultOf(act.last) ?? resultOf(act.tool);
  if (request === undefined) return { verdict: (await isDone()) ? 'done' : 'refused', findings, tried: 0, result: result() };

  const code = world.codeOf(request);
  const isPending = async () => (await requestOf()) === request;
  if (await isDone()) findings.push('had its effect before anybody decided');
  const others = act.isTried === true ? othersAt(place) : [];
  for (const [speech, isCommand] of others) {
    await world.command(speech, `/approve ${code}`, isCommand);
    if (!(await isPending()) || (await isDone())) findings.push(`was decided by ${speech.from.first_name}, who may not`);
  }
  if (owner === undefined && world.said(place).some((text) => text.includes(code))) findings.push('showed its code to somebody who may not decide');
  const approved = typeof act.expected === 'string' || act.expected.outside !== 'denied';
  // Some in the chat; all of them would be a flood.
  if (owner !== undefined && act.isTried === true) world.say({ bot, group, from: owner }, `/${approved ? 'approve' : 'deny'} ${code}`);
  else if (await isPending()) await world.call('admin.approval.resolve', { requestId: request, approved });
  await world.wait(async () => !(await isPending()) && (await hasEnded()), 'did not end after the decision');
  const done = await isDone();
  const verdict = approved ? (done ? 'asks' : 'asks in vain') : done ? 'done' : 'denied';
  return { verdict, findings, tried: others.length, result: result() };
}
