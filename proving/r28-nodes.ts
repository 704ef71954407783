import { pause } from './lib/daemon.ts';
import { http } from './lib/http.ts';
import type { Node, Nodes } from './lib/nodes.ts';
import { askWith, nonceOf, noncesIn } from './lib/provider.ts';
import { type Random, randomFrom } from './lib/random.ts';
import type { TakeoverPart } from './lib/takeover.ts';
import { forge, type Mode, modes, replaysOf, type Shot, sign } from './r28-replays.ts';

/**
 * R28 over a take-over: a webhook that the active daemon accepted and that is sent again to the standby, before, while and after that one
 * takes over, starts no second turn unnoticed; one whose answer was lost is accepted once; and neither daemon accepts a forged one.
 */
export interface ReplaysPart extends TakeoverPart {
  readonly counts: { honest: number; replays: number; forgeries: number };
}

interface Sent {
  readonly mode: Mode;
  readonly shot: Shot;
  readonly nonce: string;
  /** Turns that it may have started. */
  turns: number;
  /** How often all its replays were sent. */
  replayed: number;
}

const settleMs = 30_000;
const reportMs = 10_000;
const standbyStatus = 503;
const warning = 'Webhook repeats the body of an earlier one';

export function replaysPart(options: {
  readonly nodes: Nodes;
  readonly seed: number;
  /** Webhooks that are accepted, and as many again whose answer may be lost. */
  readonly honest: number;
  /** Forgeries for each of: the active daemon, the standby, and the one that took over. */
  readonly forgeries: number;
}): ReplaysPart {
  const { nodes, seed, honest, forgeries } = options;
  const random = randomFrom(seed);
  const counts = { honest: 0, replays: 0, forgeries: 0 };
  const accepted: Sent[] = [];
  const inFlight: Sent[] = [];
  const early: string[] = [];

  const made = (index: number): Sent => {
    const mode = modes[index % modes.length] ?? 'exact';
    const nonce = nonceOf([mode, seed, index]);
    const body = JSON.stringify({ text: askWith(nonce) });
    counts.honest += 1;
    return { mode, nonce, shot: { path: `/hooks/${mode}`, body, headers: sign(mode, body, random) }, turns: 1, replayed: 0 };
  };

  /** Sends every replay to a daemon that works. */
  async function replayAll(node: Node, sent: Sent): Promise<string[]> {
    const wrong: string[] = [];
    sent.replayed += 1;
    for (const replay of replaysOf(sent.mode, sent.shot, sent.replayed * 30)) {
      const before = warningsOf(node);
      const statuses = await Promise.all([post(node, replay), post(node, replay)]);
      counts.replays += 2;
      if (statuses.some((status) => status !== 200)) wrong.push(`${sent.mode}, ${replay.name}: answered with ${statuses.join()}`);
      if (!replay.counts) continue;
      sent.turns += 1;
      // The line may follow a little after the answer.
      for (const deadline = performance.now() + reportMs; warningsOf(node) === before && performance.now() < deadline;) await pause(10);
      if (warningsOf(node) === before) wrong.push(`${sent.mode}, ${replay.name}: nothing was reported`);
    }
    return wrong;
  }

  async function forgeAt(node: Node, refusal: number, count: number): Promise<string[]> {
    const shots = Array.from({ length: count }, () => {
      const { mode, shot } = pick(random, accepted);
      return forge(mode, shot, random);
    });
    counts.forgeries += count;
    const statuses = await Promise.all(shots.map((shot) => post(node, shot)));
    return shots.flatMap(({ path, name }, index) => (statuses[index] === refusal ? [] : [`forged ${path} ${name}: ${statuses[index]}`]));
  }

  return {
    counts,
    async prepare(active, standby) {
      for (let index = 0; index < honest; index += 1) {
        const sent = made(index);
        const status = await post(active, sent.shot);
        if (status !== 200) early.push(`${sent.mode}: an honest delivery was answered with ${status}`);
        accepted.push(sent);
        // The other ones are first repeated at the daemon that takes over.
        if (index % 2 === 0) early.push(...(await replayAll(active, sent)));
        if ((await post(standby, sent.shot)) !== standbyStatus) early.push(`${sent.mode}: the standby did not refuse a replay`);
      }
      early.push(...(await forgeAt(active, 401, forgeries)), ...(await forgeAt(standby, standbyStatus, forgeries)));
    },
    async strike(active) {
      inFlight.push(...Array.from({ length: honest }, (_, index) => made(honest + index)));
      // Whether they are accepted is unknown to their senders.
      await Promise.race(inFlight.map(({ shot }) => post(active, shot)));
    },
    async during(next, signal) {
      for (; !signal.aborted; await pause(20)) {
        const { mode, shot } = pick(random, accepted);
        counts.replays += 1;
        counts.forgeries += 1;
        await post(next, shot);
        const status = await post(next, forge(mode, shot, random));
        if (![0, 401, standbyStatus].includes(status)) early.push(`forged during the take-over: ${status}`);
      }
    },
    async check(next) {
      const wrong = early.splice(0);
      for (const { mode, shot } of inFlight) {
        const status = await post(next, shot);
        if (status !== 200) wrong.push(`${mode}: a delivery that was sent again after the take-over was answered with ${status}`);
      }
      for (const sent of [...accepted, ...inFlight]) wrong.push(...(await replayAll(next, sent)));
      wrong.push(...(await forgeAt(next, 401, forgeries)));
      return [...wrong, ...(await faultsOf(nodes, [...accepted, ...inFlight]))];
    },
  };
}

const warningsOf = (node: Node): number => node.stderr().split(warning).length;

function pick(random: Random, all: readonly Sent[]): Sent {
  const found = all[random.int(all.length)];
  if (found === undefined) throw new RangeError('nothing was sent');
  return found;
}

/** Returns the status; 0 when nobody answered. */
async function post(node: Node, { path, body, headers }: Shot): Promise<number> {
  return http({ port: node.port, path, body, headers, timeoutMs: 30_000 }).then(
    ({ status }) => status,
    () => 0,
  );
}

/** Compares the deliveries and the questions of turns with what may have been accepted. */
async function faultsOf(nodes: Nodes, sent: readonly Sent[]): Promise<string[]> {
  const countsOf = async (text: string) => {
    const counts = new Map<string, number>();
    for (const { text: found } of await nodes.query<{ text: string }>(text))
      for (const nonce of noncesIn(found)) counts.set(nonce, (counts.get(nonce) ?? 0) + 1);
    return counts;
  };
  const deliveries = await countsOf('SELECT message AS text FROM webhook_delivery');
  let turns = new Map<string, number>();
  for (const deadline = performance.now() + settleMs; performance.now() < deadline; await pause(50)) {
    turns = await countsOf(`SELECT content AS text FROM message WHERE role = 'user'`);
    if (sent.every(({ nonce, turns: expected }) => (turns.get(nonce) ?? 0) >= expected)) break;
  }
  return sent.flatMap(({ mode, nonce, turns: expected }) =>
    [
      { what: 'deliveries', found: deliveries.get(nonce) ?? 0 },
      { what: 'turns', found: turns.get(nonce) ?? 0 },
    ].flatMap(({ what, found }) => (found === expected ? [] : [`${mode}, ${nonce}: ${found} ${what} instead of ${expected}`])),
  );
}
