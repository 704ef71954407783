import type { TelegramPerson } from '@gatehouse/testkit';
import { type Speech, startWorld } from './lib/authority-world.ts';
import { askForCall, nonceOf } from './lib/provider.ts';

export interface ChangesReport {
  /** Whether each act had its effect in the end. */
  readonly acts: Readonly<Record<string, boolean>>;
  readonly wrong: readonly string[];
}

const group = -201;
const [olga, otto, oda, ada, ann, amy, eve] = ['Olga', 'Otto', 'Oda', 'Ada', 'Ann', 'Amy', 'Eve'].map((first_name, index) => ({
  id: 2_001 + index,
  first_name,
})) as [TelegramPerson, TelegramPerson, TelegramPerson, TelegramPerson, TelegramPerson, TelegramPerson, TelegramPerson];
const directly = (from: TelegramPerson): Speech => ({ bot: 'gate', from });
const inGroup = (from: TelegramPerson): Speech => ({ bot: 'gate', from, group });
const file = { effect: 'file' } as const;

/** People lose or gain their authority while a turn runs or an approval waits, the channel is disabled, and the daemon is killed: what counts is the authority at each decision. */
export async function proveAuthorityChanges({
  broken,
  patienceMs,
}: { readonly broken?: string; readonly patienceMs?: number } = {}): Promise<ChangesReport> {
  await using world = await startWorld({ broken, owners: [olga, otto], groups: new Map([[group, [otto, oda, eve]]]), patienceMs });
  const wrong: string[] = [];
  const check = (holds: boolean, what: string) => void (holds || wrong.push(what));
  const isDone = (mark: string) => world.isDone(file, mark, directly(ada));
  /** Asks for a file; returns its mark. */
  function ask(speech: Speech, name: string): string {
    const mark = nonceOf([name]);
    world.say(speech, `${mark} ${askForCall('write', { path: `output/${mark}`, content: 'x' })}`);
    return mark;
  }
  async function asked(speech: Speech, mark: string): Promise<string> {
    await world.wait(async () => (await world.requestOf(speech, mark)) !== undefined, `${mark} was not asked about`);
    return (await world.requestOf(speech, mark)) ?? '';
  }
  const ended = (speech: Speech, mark: string) => world.wait(async () => world.hasEnded(await world.rowOf(speech, mark)), `${mark} did not end`);
  /** Holds the answers of the model from a message until the end of something that happens meanwhile. */
  async function during(speech: Speech, name: string, meanwhile: () => Promise<unknown>): Promise<string> {
    const held = Promise.withResolvers<void>();
    world.model.held.until = held.promise;
    try {
      const mark = ask(speech, name);
      await world.wait(async () => world.model.seen.has(mark), `${mark} was not begun`);
      await meanwhile();
      return mark;
    } finally {
      world.model.held.until = undefined;
      held.resolve();
    }
  }
  const setOwners = async (...owners: readonly TelegramPerson[]) => {
    await world.call('config.patch', { path: 'channels.gate.owners', value: owners.map(({ id }) => String(id)), confirm: true });
    await world.connected();
  };

  for (const one of [ada, ann, amy]) await world.pair(one);
  await world.command(inGroup(eve), 'hello there');
  const acts: Record<string, string> = {};

  // Both wait when the daemon is killed.
  const ofAda = (acts['of somebody who is unpaired while it waits'] = ask(directly(ada), 'ada'));
  const ofOtto = (acts['of an owner in a group, approved by the next owner after a kill'] = ask(inGroup(otto), 'otto'));
  const [requestOfAda, requestOfOtto] = [await asked(directly(ada), ofAda), await asked(inGroup(otto), ofOtto)];
  await world.restart();
  const isPending = async () => [await world.requestOf(directly(ada), ofAda), await world.requestOf(inGroup(otto), ofOtto)];
  for (const speech of [directly(ada), inGroup(eve)]) {
    await world.command(speech, `/approve ${world.codeOf(speech.from === ada ? requestOfAda : requestOfOtto)}`);
    const [first, second] = await isPending();
    check(first === requestOfAda && second === requestOfOtto, `${speech.from.first_name} decided after a restart`);
  }

  const ofOlga = (acts['of an owner who is removed while the turn runs'] = await during(directly(olga), 'olga', () => setOwners(oda)));
  await ended(directly(olga), ofOlga);
  await world.command(inGroup(otto), `/approve ${world.codeOf(requestOfOtto)}`);
  check((await isPending())[1] === requestOfOtto, 'an owner who was removed decided');
  check(!(await isDone(ofOtto)), 'an owner who was removed had a call made');
  await world.command(inGroup(oda), `/approve ${world.codeOf(requestOfOtto)}`);
  await ended(inGroup(otto), ofOtto);

  const before = world.said(directly(ada)).length;
  await world.unpair(ada);
  await world.wait(async () => (await world.requestOf(directly(ada), ofAda)) === undefined, 'a request of somebody who was unpaired still waits');
  await ended(directly(ada), ofAda);

  const ofAmy = (acts['of somebody paired, approved while the channel is disabled'] = ask(directly(amy), 'amy'));
  const requestOfAmy = await asked(directly(amy), ofAmy);
  await world.call('channels.disable', { channel_type: 'telegram', channel_instance_id: 'gate' });
  await world.call('admin.approval.resolve', { requestId: requestOfAmy, approved: true });
  await ended(directly(amy), ofAmy);
  await world.call('channels.enable', { channel_type: 'telegram', channel_instance_id: 'gate' });
  await world.connected();
  await world.wait(async () => world.said(directly(amy)).at(-1) === 'Done', 'an answer did not wait for its channel');

  const shown = world.said(directly(ann)).length;
  const ofAnn = (acts['of somebody who is unpaired while the turn runs, denied'] = await during(directly(ann), 'ann', () => world.unpair(ann)));
  await world.call('admin.approval.resolve', { requestId: await asked(directly(ann), ofAnn), approved: false });
  await ended(directly(ann), ofAnn);
  // What is said next is answered after what waited.
  await world.command(directly(oda), '/status');
  await world.wait(async () => world.said(directly(oda)).length > 0, 'an owner was not answered');
  check(world.said(directly(ada)).length === before, `somebody got a message after the end of the pairing: ${world.said(directly(ada)).at(-1)}`);
  check(world.said(directly(ann)).length === shown, `somebody got a message after the end of the pairing: ${world.said(directly(ann)).at(-1)}`);
  const again = ask(directly(ann), 'again');
  await world.wait(async () => world.hasTaken(directly(ann)), 'a message was not taken in');
  check((await world.rowOf(directly(ann), again))?.verdict === 'pairing', 'somebody who was unpaired is still heard');
  const done: Record<string, boolean> = {};
  for (const [name, mark] of Object.entries(acts)) done[name] = await isDone(mark);
  return { acts: done, wrong };
}
