import type { ModelMessage } from '../../../packages/server/src/llm/model.ts';
import type { WorkClaim, WorkItem } from '../../../packages/server/src/features/unattended/durable/api.ts';
import {
  claimWork,
  endWaitingWork,
  killWaitingWork,
  pruneWork,
  releaseWork,
  renewWork,
  resumeAgentWork,
  resumePrincipalWork,
  resumeWork,
  returnWork,
  suspendWork,
} from '../../../packages/server/src/features/unattended/durable/store.ts';
import { deliverToInbox } from '../../../packages/server/src/transactions/deliver-message.ts';
import { pruneDeliveries } from '../../../packages/server/src/features/unattended/webhooks/store.ts';
import { toCall } from '../../../packages/server/src/kernel/db/operation.ts';
import { acceptDelivery } from '../../../packages/server/src/transactions/accept-delivery.ts';
import {
  checkpointTurn,
  commitDurableTurn,
  openDurableTurn,
  reserveForDurable,
} from '../../../packages/server/src/transactions/commit-durable-turn.ts';
import { endWork } from '../../../packages/server/src/transactions/end-interrupted-turn.ts';
import { resumeBehind } from '../../../packages/server/src/transactions/interrupted-turns.ts';
import {
  agentId,
  atMs,
  count,
  differs,
  driver,
  type Driver,
  type Names,
  namesOf,
  principalId,
  quote,
  type Side,
  valueOf,
  type Writer,
} from './driver.ts';
import { isStored, storeSlowly } from './slow-write.ts';
import { deliveryOf, messageOf, messagesOf, modelCall, turnOf } from './rows.ts';

const kind = 'webhook';
const ownerOf = (side: Side) => `owner-${side}`;
const claimOf = ({ id, owner, fence }: WorkItem): WorkClaim => ({ id, owner, fence });
const pieces = 8;

interface WorkScene {
  readonly round: string;
  readonly ids: readonly string[];
}

async function acceptPieces(db: Parameters<Driver['prepare']>[0], names: Names): Promise<WorkScene> {
  const intakes = Array.from({ length: pieces }, (_, index) => deliveryOf(names, index));
  for (const intake of intakes) await db.write(acceptDelivery, intake);
  return { round: names.round, ids: intakes.map(({ workId }) => workId) };
}

/** What each process did: what it claimed, and which ends were acknowledged. */
interface Worked {
  readonly claims: readonly string[];
  readonly ended: readonly string[];
  readonly suspended: readonly string[];
}

const claimer: Driver<WorkScene, Worked> = {
  name: 'claims',
  prepare: acceptPieces,
  async run(writer, { ids }, side) {
    const owner = ownerOf(side);
    const claims: string[] = [];
    const ended: string[] = [];
    const suspended: string[] = [];
    const mine = new Set(ids);
    const end = async (item: WorkItem) => {
      const claim = claimOf(item);
      const kept = valueOf(await writer.write(renewWork, { claims: [claim], leaseUntilMs: atMs + 120_000 }));
      if (kept?.length !== 0) writer.wrong(`the claim ${item.id} ${item.fence} is lost within its lease`);
      // Each way is used, in any order of the claims.
      const way = item.fence > 2 ? 3 : (ids.indexOf(item.id) + item.fence) % 4;
      if (way === 0) await writer.write(returnWork, { ...claim, errorKind: 'hammer', notBeforeMs: atMs });
      else if (way === 1) {
        const wait = { kind: 'provider', subject: 'hammer', untilMs: atMs + 1_000, rootRunId: 'root-hammer' } as const;
        if (valueOf(await writer.write(suspendWork, { ...claim, wait, atMs })) === true) suspended.push(item.id);
        await writer.write(resumeWork, { kind: 'provider', subject: 'hammer', atMs });
      } else if (way === 2) await writer.write(releaseWork, claim);
      else if (valueOf(await writer.write(endWork, { ...claim, state: 'done', atMs })) === true) ended.push(item.id);
      else writer.wrong(`the end of ${item.id} ${item.fence} is refused within its lease`);
    };
    // Released items are free at once for the next claim.
    for (let idle = 0; idle < 6;) {
      const items = valueOf(await writer.write(claimWork, { owner, kinds: [{ kind, free: 3 }], held: [], leaseUntilMs: atMs + 60_000, atMs }));
      idle = items === undefined || items.length === 0 ? idle + 1 : 0;
      for (const item of items ?? []) {
        if (!mine.has(item.id)) writer.wrong(`${item.id} of another round is claimed`);
        claims.push(`${item.id} ${item.fence}`);
      }
      await writer.all((items ?? []).map((item) => () => end(item)));
      if (idle > 0) await new Promise((resolve) => setTimeout(resolve, 4));
    }
    return { claims, ended, suspended };
  },
  async check(look, { ids }, results) {
    const wrong: string[] = [];
    const claims = results.flatMap(({ claims: some }) => some);
    for (const claim of new Set(claims)) {
      const times = claims.filter((other) => other === claim).length;
      if (times > 1) wrong.push(`the work item ${claim} was claimed ${times} times at the same fence`);
    }
    const ended = results.flatMap((each) => each.ended);
    const rows = await look(`select id, state, fence from work_item where id in (${ids.map(quote).join(', ')})`);
    wrong.push(...differs('work items left', rows.length, ids.length));
    for (const { id, state } of rows) {
      wrong.push(...differs(`ends of ${String(id)} that were acknowledged`, ended.filter((other) => other === id).length, 1));
      if (state !== 'done') wrong.push(`the work item ${String(id)} is stuck as ${String(state)}`);
    }
    return wrong;
  },
};

/** A step that was stored, or the state that was found by the next owner. */
type LedgerEvent =
  | { readonly kind: 'open'; readonly id: string; readonly fence: number; readonly steps: readonly number[] }
  | { readonly kind: 'step'; readonly id: string; readonly fence: number; readonly step: number; readonly kept: boolean }
  | { readonly kind: 'end'; readonly id: string; readonly fence: number };

interface Ledger {
  readonly events: readonly LedgerEvent[];
  /** Calls of which the books say something. */
  readonly booked: number;
}

const answer: ModelMessage = { role: 'assistant', content: 'done' };

/** Both claim the same items as soon as they have them: every lease lapses at once. */
const stealer: Driver<WorkScene, Ledger> = {
  name: 'take-overs',
  prepare: acceptPieces,
  async run(writer, { round, ids }, side) {
    const names = namesOf(round);
    const owner = ownerOf(side);
    const events: LedgerEvent[] = [];
    let booked = 0;
    const go = async (item: WorkItem) => {
      const { id, fence } = item;
      const index = ids.indexOf(id);
      const claim = claimOf(item);
      const ref = names.ref(index);
      const turn = turnOf(names, index, ref, { state: 'running', endedAtMs: null, steps: 0, inputTokens: 0, outputTokens: 0, costNano: 0 });
      const of = { claim, turnId: turn.id, agentId, principalId, conversationRef: ref };
      const opened = valueOf(await writer.write(openDurableTurn, { claim, turn }));
      if (opened === undefined) return;
      events.push({ kind: 'open', id, fence, steps: opened.left?.steps.map(({ step }) => step) ?? [] });
      for (let some = 0; some < 2; some += 1) {
        const step = fence * 10 + some;
        const totals = { steps: step, inputTokens: 0, outputTokens: 0, costNano: 0 };
        const intent = { opKey: names.id('intent', `${index}-${step}`), step, callId: 'c', toolName: 'ls' };
        const outcome = await writer.write(checkpointTurn, {
          ...of,
          totals,
          calls: [modelCall],
          step: { step, finished: true, messages: [answer] },
          intent,
          closed: { opKey: intent.opKey, result: answer },
        });
        if ('value' in outcome) booked += 1;
        events.push({ kind: 'step', id, fence, step, kept: valueOf(outcome) === true });
        await writer.write(reserveForDurable, { claim, id: turn.id, reservedNano: 0, model: 'hammer' });
      }
      const outcome = await writer.write(commitDurableTurn, {
        ...of,
        turn: { ...turn, state: 'completed', endedAtMs: atMs },
        calls: [modelCall],
        conversation: messagesOf(names, turn.id, ref),
        settlement: { state: 'done' },
        alongside: [toCall(deliverToInbox, messageOf(names, `end-${index}`, `-${side}-${fence}`))],
      });
      if ('value' in outcome) booked += 1;
      if (valueOf(outcome)?.settled === true) events.push({ kind: 'end', id, fence });
    };
    for (let idle = 0; idle < 4;) {
      const items = valueOf(await writer.write(claimWork, { owner, kinds: [{ kind, free: 4 }], held: [], leaseUntilMs: atMs, atMs }));
      idle = items === undefined || items.length === 0 ? idle + 1 : 0;
      await writer.all((items ?? []).map((item) => () => go(item)));
      if (idle > 0) await new Promise((resolve) => setTimeout(resolve, 4));
    }
    return { events, booked };
  },
  async check(look, { round, ids }, results) {
    const names = namesOf(round);
    const events = results.flatMap((each) => each.events);
    const wrong: string[] = [];
    for (const [index, id] of ids.entries()) {
      const own = events.filter((event) => event.id === id);
      wrong.push(...differs(`ends of ${id} that were acknowledged`, own.filter((event) => event.kind === 'end').length, 1));
      for (const open of own) {
        if (open.kind !== 'open') continue;
        for (const step of own)
          if (step.kind === 'step' && step.kept && step.fence < open.fence && !open.steps.includes(step.step))
            wrong.push(
              `the step ${step.step} of ${id}, acknowledged to the owner of fence ${step.fence}, was not there for the one of ${open.fence}`,
            );
      }
      const last = Math.max(...own.map(({ fence }) => fence));
      for (const event of own) if (event.kind === 'end' && event.fence !== last) wrong.push(`${id} was ended at fence ${event.fence} of ${last}`);
      const [seen] = await look(`select count(*) as count from inbox_message where op_key = ${quote(names.id('op', `end-${index}`))}`);
      wrong.push(...differs(`messages about the end of ${id}`, seen?.['count'], 1));
      const [row] = await look(`select turn_count, message_count, last_seq, cost_nano from conversation where ref = ${quote(names.ref(index))}`);
      wrong.push(
        ...differs(`turns in the conversation of ${id}`, row?.['turn_count'], 1),
        ...differs(`messages of ${id}`, row?.['message_count'], 2),
      );
    }
    const turns = ids.map((_, index) => quote(names.id('tn', index))).join(', ');
    const [calls] = await look(`select count(*) as count from model_call where turn_id in (${turns})`);
    wrong.push(...differs('calls in the books', calls?.['count'], results[0].booked + results[1].booked));
    for (const table of ['turn_step', 'turn_intent', 'durable_turn']) {
      const [left] = await look(`select count(*) as count from ${table} where turn_id in (${turns})`);
      wrong.push(...differs(`rows left in ${table}`, left?.['count'], 0));
    }
    return wrong;
  },
};

interface Slow {
  /** Indexes of the items for which a write of the first owner was acknowledged. */
  readonly kept: readonly number[];
  /** Indexes of the items that were taken over before that write could be seen. */
  readonly taken: readonly number[];
}

/** A take-over that comes during a write of the owner before: it waits for that write, or the write is refused. */
const slowOwners: Driver<WorkScene & { readonly items: readonly WorkItem[] }, Slow> = {
  name: 'slow owners',
  async prepare(db, names) {
    const scene = await acceptPieces(db, names);
    const items = await db.write(claimWork, { owner: 'slow', kinds: [{ kind, free: pieces }], held: [], leaseUntilMs: atMs, atMs });
    return { ...scene, items };
  },
  async run(writer, { round, items }, side) {
    const names = namesOf(round);
    const kept: number[] = [];
    const taken: number[] = [];
    if (side === 0) {
      await writer.race(
        items.map((item, place) => async () => {
          if (valueOf(await writer.write(storeSlowly, { claim: claimOf(item), row: names.audit(place) })) === true) kept.push(place);
        }),
      );
      return { kept, taken };
    }
    for (let left = items.length; left > 0;) {
      const claimed = valueOf(
        await writer.write(claimWork, { owner: 'next', kinds: [{ kind, free: 2 }], held: [], leaseUntilMs: atMs + 60_000, atMs }),
      );
      for (const { id } of claimed ?? []) {
        left -= 1;
        const place = items.findIndex((item) => item.id === id);
        if (!(await writer.read(isStored, { id: names.audit(place).id }))) taken.push(place);
      }
    }
    return { kept, taken };
  },
  check(_, __, [{ kept }, { taken }]) {
    return kept
      .filter((place) => taken.includes(place))
      .map((place) => `the item ${place} was taken over, and then its former owner stored something`);
  },
};

/** The same deliveries, with the same key, sent to both. */
const deliveries: Driver<{ readonly round: string }, { readonly accepted: readonly number[] }> = {
  name: 'deliveries',
  prepare: (_, { round }) => Promise.resolve({ round }),
  async run(writer, { round }, side) {
    const names = namesOf(round);
    const accepted = await writer.all(
      Array.from({ length: 8 }, (_, index) => async () => {
        const event = { agentId: names.id('agent', 0), text: 'same', source: 'webhook', opKey: names.id('event', `${index}-${side}`), atMs };
        const intake = { ...deliveryOf(names, index, { liveKey: `${names.id('body', index)}.key`, side }), event };
        const outcome = await writer.write(acceptDelivery, intake);
        return valueOf(outcome)?.isNew === true ? 1 : 0;
      }),
    );
    await writer.write(pruneDeliveries, { beforeMs: 0, kept: 20_000, limit: 10 });
    return { accepted };
  },
  async check(look, { round }, [first, second]) {
    const names = namesOf(round);
    const wrong: string[] = [];
    for (let index = 0; index < 8; index += 1) {
      wrong.push(...differs(`acceptances of delivery ${index}`, (first.accepted[index] ?? 0) + (second.accepted[index] ?? 0), 1));
      const rows = await look(`select id, repeats from webhook_delivery where body_digest = ${quote(names.id('body', index))}`);
      wrong.push(...differs(`rows of delivery ${index}`, rows.length, 1), ...differs(`repeats of delivery ${index}`, rows[0]?.['repeats'], 1));
    }
    const [items] = await look(`select count(*) as count from work_item where id like 'wi_wd_${names.round}-%'`);
    const [events] = await look(`select sum(repeats) as count from heartbeat_event where agent_id = ${quote(names.id('agent', 0))}`);
    return [...wrong, ...differs('work items', items?.['count'], 8), ...differs('events, with repeats', events?.['count'], 8)];
  },
};

/** Stops and resumes of waiting work: each kind is marked once. */
const waits: Driver<WorkScene, { readonly killed: number; readonly gaveUp: number }> = {
  name: 'waits',
  async prepare(db, names) {
    const scene = await acceptPieces(db, names);
    const items = await db.write(claimWork, {
      owner: 'past',
      kinds: [{ kind, free: 1_000 }],
      held: [],
      leaseUntilMs: atMs + 60_000,
      atMs,
    });
    for (const item of items)
      await db.write(suspendWork, {
        ...claimOf(item),
        wait: { kind: 'provider', subject: names.round, untilMs: atMs + 1_000_000, rootRunId: names.id('root', 0) },
        atMs,
      });
    return scene;
  },
  async run(writer, { round, ids }) {
    const names = namesOf(round);
    const killed = await writer.write(killWaitingWork, { rootRunId: names.id('root', 0), atMs: atMs + 10 });
    const gaveUp = await writer.all(ids.map((id) => () => writer.write(endWaitingWork, { id, endedBy: 'killed', atMs: atMs + 10 })));
    await writer.race([
      () => writer.write(resumeAgentWork, { agentId, atMs: atMs + 10 }),
      () => writer.write(resumePrincipalWork, { principalId: names.round, atMs: atMs + 10 }),
      () => writer.write(resumeBehind, { atMs: atMs + 10 }),
      () => writer.write(pruneWork, { beforeMs: 0, limit: 10 }),
    ]);
    return { killed: valueOf(killed) ?? 0, gaveUp: count(gaveUp, (is) => is) };
  },
  async check(look, { ids }, [first, second]) {
    const rows = await look(`select state, waiting_json from work_item where id in (${ids.map(quote).join(', ')})`);
    return [
      ...differs('waits that were killed', first.killed + second.killed, ids.length),
      ...differs(
        'items marked',
        rows.filter(({ waiting_json: json }) => String(json).includes('"endedBy":"killed"') || String(json).includes('"endedBy": "killed"')).length,
        ids.length,
      ),
    ];
  },
};

/** Ends what a round has left, so that the next one is alone with its items. */
export async function endLeft(writer: Pick<Writer, 'write'>): Promise<void> {
  const kinds = ['webhook', 'subagent', 'announce', 'graph', 'graph_told', 'session_send', 'cron', 'heartbeat'].map((each) => ({
    kind: each,
    free: 1_000,
  }));
  const left = valueOf(await writer.write(claimWork, { owner: 'last', kinds, held: [], leaseUntilMs: atMs * 2, atMs: atMs + 10_000_000 }));
  for (const item of left ?? []) await writer.write(endWork, { ...claimOf(item), state: 'done', atMs });
}

export const workDrivers = [driver(claimer), driver(stealer), driver(slowOwners), driver(deliveries), driver(waits)];
