import type { MadeCall, MadeWork } from '../../../packages/server/src/features/access/budgets/api.ts';
import { leaveRequest } from '../../../packages/server/src/features/access/approvals/store.ts';
import { recoverRoots } from '../../../packages/server/src/features/delegation/autonomy/roots/life-store.ts';
import { recoverTasks } from '../../../packages/server/src/features/environment/background/store.ts';
import { adoptNode, beginNode, claimLapsed, moveNode, renewNode } from '../../../packages/server/src/features/operations/nodes/store.ts';
import { freeWork, takeOverWork } from '../../../packages/server/src/features/unattended/durable/store.ts';
import { beginReceipt, dropReceipt } from '../../../packages/server/src/features/conversations/receipts/store.ts';
import { toCallRow } from '../../../packages/server/src/features/conversations/turns/running/turn-row.ts';
import { commitTurn, openTurn } from '../../../packages/server/src/transactions/commit-turn.ts';
import { abortOpenTurns } from '../../../packages/server/src/transactions/open-work.ts';
import {
  agentId,
  atMs,
  count,
  differs,
  driver,
  type Driver,
  liveBoot,
  type Names,
  namesOf,
  otherBoot,
  principalId,
  quote,
  valueOf,
  type Writer,
} from './driver.ts';
import { modelCall, turnOf } from './rows.ts';
import { commitSlowly, countStored } from './slow-write.ts';

const boots = 6;
const lapsedMs = -1;
/** Longer than a run, by any clock. */
const leaseMs = 10_000_000;

const startOf = (names: Names, boot: string) => ({
  bootId: names.id('boot', boot),
  homeId: names.id('home', boot),
  version: '1',
  role: 'active' as const,
  leaseMs,
  isSole: 0 as const,
  prunedBeforeMs: 0,
  atMs,
});

const madeCall: MadeCall = {
  provider: 'hammer',
  modelId: 'noted',
  operation: 'interactive',
  usage: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, estimated: false },
  cost: { input: 1, output: 0, cacheRead: 0, cacheWrite: 0 },
  savedNano: null,
  latencyMs: 1,
  startedAtMs: atMs,
  outcome: 'ok',
};

/** Calls that a killed process had noted: two of a turn without a row, and one of a turn that had booked it. */
function madeOf(names: Names): readonly MadeWork[] {
  const begun = { sessionKey: `hammer:${names.round}`, origin: 'rpc' as const, traceId: '', startedAtMs: atMs, bootId: names.id('boot', 0) };
  const of = { agentId, principalId, conversationRef: names.ref(0), turn: { conversationRef: names.ref(0), ...begun }, isInFlight: false };
  return [
    { ...of, id: names.id('tn', 'noted'), calls: [madeCall, madeCall] },
    { ...of, id: names.id('tn', 'booked'), calls: [madeCall] },
  ];
}

/** Waits for the first slow write: the next ones are under way then. */
async function untilWritten(writer: Writer, names: Names): Promise<void> {
  for (let look = 0; look < 1_000; look += 1) {
    for (let index = 0; index < boots; index += 1) if ((await writer.read(countStored, { target: names.id('boot', index) })) > 0) return;
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

interface Claims {
  /** How many slow writes of each boot could be seen when it had been claimed. */
  readonly seen: readonly (readonly [boot: number, writes: number])[];
  readonly claimed: readonly string[];
  readonly stored: readonly number[];
}

/** Boots whose leases have lapsed while they still write: claimed once, and nothing of them comes after the claim. */
const claims: Driver<{ readonly round: string }, Claims> = {
  name: 'boots',
  async prepare(db, names) {
    for (let index = 0; index < boots; index += 1) {
      await db.write(beginNode, startOf(names, String(index)));
      const turn = turnOf(names, `open-${index}`, names.ref(index), {
        bootId: names.id('boot', index),
        state: 'running',
        endedAtMs: null,
        reservedNano: 5,
      });
      await db.write(openTurn, { turn });
    }
    await db.write(commitTurn, { turn: turnOf(names, 'booked', names.ref(0)), calls: [toCallRow(madeCall)], conversation: null });
    // Only now: a boot that begins claims those whose leases have lapsed.
    for (let index = 0; index < boots; index += 1)
      await db.write(renewNode, { bootId: names.id('boot', index), address: null, leaseMs: lapsedMs, atMs });
    return { round: names.round };
  },
  async run(writer, { round }, side) {
    const names = namesOf(round);
    const seen: [number, number][] = [];
    const claimed: string[] = [];
    const stored: number[] = [];
    const claiming = { bootId: liveBoot, homeId: 'home-live', isSole: 0 as const, atMs };
    if (side === 0)
      await writer.race(
        Array.from({ length: boots }, (_, index) => index).flatMap((index) => {
          const bootId = names.id('boot', index);
          return [
            async () => {
              for (let turns = 0; turns < 20; turns += 1) {
                const turn = turnOf(names, `slow-${index}-${turns}`, names.ref(100 + index), { bootId });
                const row = { ...names.audit(`slow-${index}-${turns}`), target: bootId };
                if (valueOf(await writer.write(commitSlowly, { turn, row })) !== true) return;
              }
            },
            async () => {
              const turn = turnOf(names, `late-${index}`, names.ref(200 + index), { bootId });
              const done = valueOf(await writer.write(commitTurn, { turn, calls: [modelCall], conversation: null }));
              if (done?.isRefused !== true) stored.push(index);
            },
          ];
        }),
      );
    else {
      await untilWritten(writer, names);
      const got = valueOf(await writer.write(claimLapsed, claiming));
      for (const { bootId } of got ?? []) {
        claimed.push(bootId);
        const index = Array.from({ length: boots }, (_, each) => names.id('boot', each)).indexOf(bootId);
        if (index === -1) continue;
        seen.push([index, await writer.read(countStored, { target: bootId })]);
      }
    }
    const own = startOf(names, `own-${side}`);
    const others = [startOf(names, `later-${side}-0`), startOf(names, `later-${side}-1`)];
    for (const start of [own, ...others]) for (const { bootId } of valueOf(await writer.write(beginNode, start)) ?? []) claimed.push(bootId);
    for (const { bootId } of others) await writer.write(renewNode, { bootId, address: null, leaseMs: lapsedMs, atMs });
    const later = await writer.all([() => writer.write(claimLapsed, claiming), () => writer.write(adoptNode, { ...claiming, prunedBeforeMs: 0 })]);
    for (const outcome of later) for (const { bootId } of valueOf(outcome) ?? []) claimed.push(bootId);
    await writer.race([
      () => writer.write(renewNode, { bootId: own.bootId, address: null, leaseMs, atMs }),
      () => writer.write(abortOpenTurns, { atMs, made: madeOf(names), keptSinceMs: 0 }),
      () => writer.write(freeWork, { owner: liveBoot }),
      () => writer.write(takeOverWork, { owner: liveBoot, atMs, untilMs: atMs * 2, stepMs: 1_000 }),
      () => writer.write(recoverTasks, { bootId: liveBoot, atMs, content: 'ended' }),
      () => writer.write(recoverRoots, { atMs, sinceMs: 0, limit: 10 }),
      () => writer.write(leaveRequest, { id: names.id('ap', 'none'), waitsAt: liveBoot }),
    ]);
    if (side === 1) {
      const renewed = await writer.write(renewNode, { bootId: names.id('boot', 0), address: null, leaseMs, atMs });
      if (count([renewed], Boolean) > 0) writer.wrong('the lease of a claimed boot was renewed');
    }
    await writer.write(moveNode, { bootId: own.bootId, state: 'ended' });
    return { seen, claimed, stored };
  },
  async check(look, { round }, [first, second]) {
    const names = namesOf(round);
    const claimed = [...first.claimed, ...second.claimed];
    const later = ['later-0-0', 'later-0-1', 'later-1-0', 'later-1-1'].map((boot) => names.id('boot', boot));
    const asked = [...Array.from({ length: boots }, (_, index) => names.id('boot', index)), ...later];
    const turns = await look(`select id, state, ended_at_ms from turn where id like 'tn_${round}-%'`);
    const late: string[] = [];
    for (const [index, writes] of second.seen) {
      const [now] = await look(`select count(*) as count from audit where target = ${quote(names.id('boot', index))}`);
      late.push(...differs(`writes of boot ${index}, which was claimed after`, now?.['count'], writes));
    }
    const wrong: string[] = [];
    for (let index = 0; index < boots; index += 1) {
      const [calls] = await look(`select count(*) as count from model_call where turn_id = ${quote(names.id('tn', `open-${index}`))}`);
      const [stored] = await look(`select count(*) as count from turn where id = ${quote(names.id('tn', `late-${index}`))}`);
      wrong.push(
        ...differs(`charges of the reserve of boot ${index}`, calls?.['count'], 1),
        ...differs(`rows of the late turn of boot ${index}`, stored?.['count'], first.stored.includes(index) ? 1 : 0),
      );
    }
    const [noted] = await look(`select count(*) as count from model_call where turn_id = ${quote(names.id('tn', 'noted'))}`);
    const [killed] = await look(`select count(*) as count from turn where id = ${quote(names.id('tn', 'noted'))} and state = 'aborted'`);
    const [before] = await look(`select count(*) as count from model_call where turn_id = ${quote(names.id('tn', 'booked'))}`);
    return [
      ...wrong,
      ...differs('noted calls of a turn without a row', noted?.['count'], madeOf(names)[0]?.calls.length),
      ...differs('rows of that turn', killed?.['count'], 1),
      ...differs('noted calls of a turn that had booked them', before?.['count'], 1),
      ...late,
      ...asked.flatMap((boot) => differs(`claims of ${boot}`, claimed.filter((other) => other === boot).length, 1)),
      ...turns.flatMap(({ id, ended_at_ms: ended }) => (ended === null ? [`the turn ${String(id)} is left open`] : [])),
    ];
  },
};

const keys = 8;

/** Turns of the same key that begin in two daemons: one of them runs. */
const receipts: Driver<{ readonly round: string }, { readonly begun: readonly number[] }> = {
  name: 'receipts',
  prepare: (_, { round }) => Promise.resolve({ round }),
  async run(writer, { round }, side) {
    const names = namesOf(round);
    const bootId = side === 0 ? liveBoot : otherBoot;
    const rowOf = (index: number) => ({
      principalId,
      key: names.id('key', index),
      digest: '',
      conversationRef: names.ref(0),
      state: 'running' as const,
      bootId,
      outcomeJson: null,
      createdAtMs: atMs,
      expiresAtMs: atMs + leaseMs,
    });
    const begun = await writer.all(
      Array.from({ length: keys }, (_, index) => async () => {
        const outcome = await writer.write(beginReceipt, { row: rowOf(index), ageNowMs: atMs });
        return 'value' in outcome && outcome.value === undefined ? 1 : 0;
      }),
    );
    await writer.write(dropReceipt, { principalId, key: names.id('key', 'none'), bootId });
    return { begun };
  },
  async check(look, { round }, [first, second]) {
    const names = namesOf(round);
    const wrong: string[] = [];
    for (let index = 0; index < keys; index += 1) {
      const [row] = await look(`select boot_id from receipt where idempotency_key = ${quote(names.id('key', index))}`);
      const owner = first.begun[index] === 1 ? liveBoot : otherBoot;
      wrong.push(...differs(`turns that began under the key ${index}`, (first.begun[index] ?? 0) + (second.begun[index] ?? 0), 1));
      if (row?.['boot_id'] !== owner) wrong.push(`the key ${index} belongs to ${String(row?.['boot_id'])}, and its turn runs in ${owner}`);
    }
    return wrong;
  },
};

export const nodeDrivers = [driver(claims), driver(receipts)];
