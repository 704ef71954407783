import { addCondensed, addLeaf, moveCut, type SummaryNode } from '../../../packages/server/src/features/conversations/context/store.ts';
import { deleteResponse, keepResponse, pruneResponses } from '../../../packages/server/src/features/conversations/responses/store.ts';
import { keepReceipt, pruneReceipts } from '../../../packages/server/src/features/conversations/receipts/store.ts';
import { countCompaction } from '../../../packages/server/src/features/conversations/sessions/changes/reset-store.ts';
import { labelConversation, suggestName } from '../../../packages/server/src/features/conversations/sessions/changes/label-store.ts';
import { forkConversation } from '../../../packages/server/src/features/conversations/sessions/changes/fork-store.ts';
import { indexMessages } from '../../../packages/server/src/features/conversations/sessions/search/index-store.ts';
import { findConversation } from '../../../packages/server/src/features/conversations/sessions/store.ts';
import { dropTurnMessages, keepTurnMessage } from '../../../packages/server/src/features/conversations/turns/lanes/turn-message-store.ts';
import { reserveForTurn } from '../../../packages/server/src/features/conversations/turns/store.ts';
import {
  addTask,
  dropTask,
  endTask,
  markTasks,
  recordStop,
  recordTyping,
} from '../../../packages/server/src/features/environment/background/store.ts';
import { rollUp } from '../../../packages/server/src/features/access/budgets/store.ts';
import { toCall } from '../../../packages/server/src/kernel/db/operation.ts';
import { commitTurn, openTurn } from '../../../packages/server/src/transactions/commit-turn.ts';
import { deleteConversation } from '../../../packages/server/src/transactions/delete-conversation.ts';
import { bookWork, openWork } from '../../../packages/server/src/transactions/open-work.ts';
import { resetConversation, resetSession } from '../../../packages/server/src/transactions/reset-conversation.ts';
import { acceptSend } from '../../../packages/server/src/transactions/send-work.ts';
import {
  agentId,
  atMs,
  count,
  differs,
  driver,
  type Driver,
  type Look,
  type Names,
  namesOf,
  principalId,
  quote,
  type Side,
  valueOf,
  liveBoot,
} from './driver.ts';
import { messagesOf, modelCall, turnOf } from './rows.ts';
import { sendOf } from './delegation.ts';

interface Round {
  readonly round: string;
}

const conversations = 3;
const turnsEach = 6;
const hourMs = 3_600_000;

/** Stores a turn whole in a conversation. */
const commitOf = (names: Names, index: string, ref: string) => {
  const turn = turnOf(names, index, ref);
  return { turn, calls: [modelCall], conversation: messagesOf(names, turn.id, ref) };
};

const taskOf = (names: Names, index: string) => ({
  id: names.id('bg', index),
  agentId,
  conversationRef: names.ref(0),
  sessionKey: `hammer:${names.round}`,
  principalId,
  tokenId: 'root',
  turnId: names.id('tn', index),
  rootRunId: null,
  traceId: '',
  toolName: 'shell',
  description: '',
  begunBy: 'rpc' as const,
  chain: 0,
  state: 'running' as const,
  outcome: null,
  content: null,
  startedAtMs: atMs,
  endedAtMs: null,
  bootId: liveBoot,
});

/** Both store turns in the same conversations, with what their callers add. */
const growing: Driver<Round, { readonly stored: readonly number[]; readonly created: readonly number[]; readonly usage: number }> = {
  name: 'turns of one conversation',
  prepare: async (db, names) => {
    await db.write(addTask, { row: taskOf(names, 'shared'), ageNowMs: atMs });
    await db.write(commitTurn, commitOf(names, 'before', names.ref(conversations)));
    return { round: names.round };
  },
  async run(writer, { round }, side) {
    const names = namesOf(round);
    const refs = Array.from({ length: conversations }, (_, index) => names.ref(index));
    const stored = refs.map(() => 0);
    const created = refs.map(() => 0);
    let usage = 0;
    const one = (place: number, turn: number) => async () => {
      const ref = refs[place] ?? '';
      const index = `${side}-${place}-${turn}`;
      const commit = commitOf(names, index, ref);
      const receipt = {
        principalId,
        key: names.id('key', `${place}-${turn}`),
        digest: '',
        state: 'opened' as const,
        bootId: liveBoot,
        conversationRef: ref,
        outcomeJson: null,
        createdAtMs: atMs,
        expiresAtMs: atMs + hourMs,
      };
      const response = {
        id: names.id('resp', index),
        previousId: null,
        principalId,
        agentId,
        bodyJson: '{}',
        systemJson: '[]',
        messagesJson: '[]',
        createdAtMs: atMs,
        expiresAtMs: atMs + hourMs,
      };
      await writer.write(openTurn, { turn: { ...commit.turn, state: 'running', endedAtMs: null }, alongside: [toCall(keepReceipt, receipt)] });
      await writer.write(reserveForTurn, { id: commit.turn.id, reservedNano: 5, model: 'hammer' });
      const { id: turnId, conversationRef, sessionKey } = commit.turn;
      const given = { id: names.id('tm', index), turnId, bootId: liveBoot, conversationRef, sessionKey, agentId, principalId, text: 'x', atMs };
      await writer.write(keepTurnMessage, given);
      const outcome = valueOf(
        await writer.write(commitTurn, {
          ...commit,
          alongside: [
            toCall(dropTurnMessages, { turnId }),
            toCall(keepReceipt, { ...receipt, state: 'ended', outcomeJson: '{}' }),
            toCall(keepResponse, response),
            toCall(markTasks, { ids: [names.id('bg', 'shared')], state: 'told' }),
          ],
        }),
      );
      if (outcome === undefined) return;
      stored[place] = (stored[place] ?? 0) + 1;
      if (outcome.created) created[place] = (created[place] ?? 0) + 1;
    };
    const work = (turn: number) => async () => {
      const id = `wk_${names.round}-${side}-${turn}`;
      const of = { id, agentId, principalId, conversationRef: names.ref(conversations) };
      await writer.write(openWork, {
        ...of,
        operation: 'compaction',
        part: { rootRunId: names.id('root', 'none') },
        model: 'hammer',
        reservedNano: 1,
        traceId: '',
        startedAtMs: atMs,
        bootId: liveBoot,
      });
      const call = {
        provider: 'hammer',
        modelId: 'hammer',
        operation: 'compaction' as const,
        usage: someUsage,
        cost: { input: 1, output: 0, cacheRead: 0, cacheWrite: 0 },
      };
      const booked = await writer.write(bookWork, {
        ...of,
        opened: true,
        calls: [{ ...call, savedNano: null, latencyMs: 1, startedAtMs: atMs, outcome: 'ok' as const }],
      });
      if ('value' in booked) usage += 1;
    };
    await writer.race([
      ...refs.flatMap((_, place) => Array.from({ length: turnsEach }, (__, turn) => one(place, turn))),
      ...Array.from({ length: 3 }, (_, turn) => work(turn)),
      ...Array.from({ length: turnsEach }, (_, turn) => () => {
        const index = `alone-${side}-${turn}`;
        return writer.write(commitTurn, { turn: turnOf(names, index, names.ref(10 + turn)), calls: [modelCall], conversation: null });
      }),
      () => writer.write(indexMessages, { maxRows: 50, maxBytes: 100_000 }),
      () => writer.write(rollUp, { limit: 50 }),
      () => writer.write(countCompaction, { ref: names.ref(conversations) }),
      () => writer.write(pruneReceipts, { atMs: 0 }),
      () => writer.write(pruneResponses, { nowMs: 0 }),
      () => writer.write(deleteResponse, { id: names.id('resp', 'none'), principalId }),
    ]);
    return { stored, created, usage };
  },
  async check(look, { round }, [first, second]) {
    const names = namesOf(round);
    const wrong: string[] = [];
    for (let place = 0; place < conversations; place += 1) {
      const ref = names.ref(place);
      const turns = (first.stored[place] ?? 0) + (second.stored[place] ?? 0);
      const [row] = await look(`select turn_count, cost_nano from conversation where ref = ${quote(ref)}`);
      wrong.push(
        ...differs(`turns of ${ref}`, row?.['turn_count'], turns),
        ...differs(`cost of ${ref}`, row?.['cost_nano'], turns),
        ...differs(`answers that ${ref} is new`, (first.created[place] ?? 0) + (second.created[place] ?? 0), 1),
        ...(await wholeConversation(look, ref, turns * 2)),
      );
    }
    const [background] = await look(`select cost_nano, compaction_count from conversation where ref = ${quote(names.ref(conversations))}`);
    wrong.push(
      ...differs('cost of work in the background', background?.['cost_nano'], 1 + first.usage + second.usage),
      ...differs('compactions', background?.['compaction_count'], 2),
    );
    const [responses] = await look(`select count(*) as count from response where id like 'resp_${round}-%'`);
    const stored = [...first.stored, ...second.stored].reduce((sum, some) => sum + some, 0);
    const [receipts] = await look(`select count(*) as count from receipt where idempotency_key like 'key_${round}-%' and outcome_json is not null`);
    const [alone] = await look(`select count(*) as count from model_call where turn_id like 'tn_${round}-alone-%'`);
    const [open] = await look(`select count(*) as count from turn where conversation_ref like '%${round}-%' and ended_at_ms is null`);
    const [given] = await look(`select count(*) as count from turn_message where id like 'tm_${round}-%'`);
    return [
      ...wrong,
      ...differs('messages of turns that have ended', given?.['count'], 0),
      ...differs('responses', responses?.['count'], stored),
      ...differs('receipts', receipts?.['count'], conversations * turnsEach),
      ...differs('calls of turns without messages', alone?.['count'], turnsEach * 2),
      ...differs('turns that have not ended', open?.['count'], 0),
      ...(await wholeUsage(look)),
    ];
  },
};

const someUsage = { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, estimated: false };

/** Positions have neither gaps nor repeats, and the row says how many there are. */
async function wholeConversation(look: Look, ref: string, expected?: number): Promise<readonly string[]> {
  const [row] = await look(`select id, last_seq, message_count from conversation where ref = ${quote(ref)}`);
  if (row === undefined) return expected === undefined ? [] : [`the conversation ${ref} is missing`];
  const [found] = await look(
    `select count(*) as count, count(distinct seq) as positions, coalesce(min(seq), 1) as first, coalesce(max(seq), 0) as last from message where conversation_id = ${Number(row['id'])}`,
  );
  return [
    ...differs(`messages of ${ref}`, found?.['count'], expected ?? row['message_count']),
    ...differs(`messages counted in ${ref}`, row['message_count'], found?.['count']),
    ...differs(`positions of ${ref}`, found?.['positions'], found?.['count']),
    ...differs(`first position of ${ref}`, found?.['first'], 1),
    ...differs(`last position of ${ref}`, found?.['last'], row['last_seq']),
  ];
}

/** Slots hold the sums of all calls up to the cursor. */
async function wholeUsage(look: Look): Promise<readonly string[]> {
  const [slots] = await look(`select coalesce(sum(calls), 0) as calls from usage_slot where principal_id = ''`);
  const [calls] = await look('select count(*) as count from model_call');
  const more = Number(slots?.['calls']) - Number(calls?.['count']);
  return more > 0 ? [`${more} calls are summed twice`] : [];
}

const deletable = 4;

interface Erasures {
  readonly deleted: readonly number[];
  readonly forked: readonly number[];
}

/** Turns, copies, resets and deletions of the same conversations. */
const erasing: Driver<Round, Erasures> = {
  name: 'erasures',
  async prepare(db, names) {
    for (let place = 0; place < deletable; place += 1)
      for (let turn = 0; turn < 3; turn += 1) await db.write(commitTurn, commitOf(names, `first-${place}-${turn}`, names.ref(place)));
    return { round: names.round };
  },
  async run(writer, { round }, side) {
    const names = namesOf(round);
    const deleted: number[] = [];
    const forked: number[] = [];
    const gone = ['not_found', 'conflict', 'precondition_failed'];
    await writer.race(
      Array.from({ length: deletable }, (_, place) => {
        const ref = names.ref(place);
        const audit = (what: string) => names.audit(`${what}-${place}-${side}`);
        return [
          () => writer.write(commitTurn, commitOf(names, `race-${place}-${side}`, ref)),
          () => writer.write(resetSession, { ref, audit: audit('reset') }),
          () => writer.write(resetConversation, { ref, memories: 'delete' as const, audit: audit('erase') }),
          async () => {
            const fork = {
              sourceRef: ref,
              toSeq: null,
              ref: names.ref(100 + place),
              principalId,
              sessionKey: `fork:${names.round}`,
              atMs,
              audit: audit('fork'),
            };
            if ('value' in (await writer.write(forkConversation, fork, gone))) forked.push(place);
          },
          () =>
            writer.write(labelConversation, { ref, name: `Named ${side}`, shelf: 'pinned', tags: [`side-${side}`], audit: audit('label') }, [
              'precondition_failed',
            ]),
          () => writer.write(suggestName, { ref, name: `Suggested ${side}`, resetCount: 0, createdAtMs: atMs }),
          async () => {
            const archival = { ref, archiveId: names.id('ar', `${place}-${side}`), atMs, audit: audit('delete') };
            if ('value' in (await writer.write(deleteConversation, archival, ['not_found']))) deleted.push(place);
          },
          ...[0, 1].map((n) => () => writer.write(acceptSend, sendOf(names, `${place}-${side}-${n}`, ref), ['not_found'])),
        ];
      }).flat(),
    );
    return { deleted, forked };
  },
  async check(look, { round }, [first, second]) {
    const names = namesOf(round);
    const wrong: string[] = [];
    for (let place = 0; place < deletable; place += 1) {
      const ref = names.ref(place);
      const isPlace = (other: number) => other === place;
      const deletions = [...first.deleted, ...second.deleted].filter(isPlace).length;
      const [archives] = await look(`select count(*) as count from session_archive where ref = ${quote(ref)}`);
      wrong.push(...differs(`archives of ${ref}`, archives?.['count'], deletions));
      const forks = [...first.forked, ...second.forked].filter(isPlace).length;
      if (forks > 1) wrong.push(`${ref} was copied ${forks} times to one key`);
      wrong.push(...(await wholeConversation(look, ref)), ...(await wholeConversation(look, names.ref(100 + place))));
      const [audits] = await look(`select count(*) as count from audit where id like 'au_${round}-delete-${place}-%'`);
      wrong.push(...differs(`audit rows of deletions of ${ref}`, audits?.['count'], deletions));
      const [row] = await look(`select id from conversation where ref = ${quote(ref)}`);
      if (row === undefined) wrong.push(...(await noOpenSends(look, ref)));
    }
    const [orphans] = await look('select count(*) as count from message where conversation_id not in (select id from conversation)');
    return [...wrong, ...differs('messages without a conversation', orphans?.['count'], 0)];
  },
};

async function noOpenSends(look: Look, ref: string): Promise<readonly string[]> {
  const [open] = await look(`select count(*) as count from session_send where to_ref = ${quote(ref)} and ended_at_ms is null`);
  return differs(`open messages to the deleted ${ref}`, open?.['count'], 0);
}

const nodeOf = (names: Names, index: string, fromSeq: number, toSeq: number, more: Partial<SummaryNode> = {}): SummaryNode => ({
  id: names.id('sn', index),
  kind: 'leaf',
  depth: 0,
  fromSeq,
  toSeq,
  tokenCount: 1,
  content: 'said',
  taint: 'clean',
  model: 'hammer',
  stopgap: 0,
  parentId: null,
  createdAtMs: atMs,
  ...more,
});

/** Both summarize the same messages, while they are reset. */
const summaries: Driver<Round & { readonly conversationId: number }, { readonly leaves: number; readonly cuts: number; readonly parents: number }> = {
  name: 'summaries',
  async prepare(db, names) {
    for (let turn = 0; turn < 3; turn += 1) await db.write(commitTurn, commitOf(names, String(turn), names.ref(0)));
    const ref = names.ref(0);
    const basis = (turn: number) => ({ ref, floor: 0, toSeq: turn * 2 + 2, turnId: names.id('tn', turn) });
    await db.write(addLeaf, { basis: basis(0), node: nodeOf(names, 'leaf-0', 1, 2) });
    const found = await db.read(findConversation, { ref, principalId: null, agentIds: null });
    if (found === undefined) throw new Error('there is no conversation');
    return { round: names.round, conversationId: found.id };
  },
  async run(writer, { round, conversationId }, side) {
    const names = namesOf(round);
    const ref = names.ref(0);
    const leaf = { basis: { ref, floor: 0, toSeq: 4, turnId: names.id('tn', 1) }, node: nodeOf(names, `leaf-1-${side}`, 3, 4) };
    const first = await writer.write(addLeaf, leaf);
    const cut = { ref, from: { cutSeq: 0, floor: 0, covered: 4 }, cutSeq: 2, prefix: `of ${side}`, prefixTokens: 1, stopgap: null, atMs };
    const moved = await writer.write(moveCut, cut);
    const parent = await writer.write(addCondensed, {
      conversationId,
      node: nodeOf(names, `parent-${side}`, 1, 2, { kind: 'condensed', depth: 1 }),
      childIds: [names.id('sn', 'leaf-0')],
    });
    return { leaves: count([first], Boolean), cuts: count([moved], Boolean), parents: count([parent], Boolean) };
  },
  async check(look, { round }, [first, second]) {
    const names = namesOf(round);
    const nodes = await look(`select id from summary where id like 'sn_${names.round}-leaf-%'`);
    return [
      ...differs('leaves of the same messages', first.leaves + second.leaves, 1),
      ...differs('rows of leaves', nodes.length, 2),
      ...differs('moves of the same cut', first.cuts + second.cuts, 1),
      ...differs('parents of the same leaf', first.parents + second.parents, 1),
    ];
  },
};

/** Ends and drops of the same tasks. */
const tasks: Driver<Round, { readonly ended: readonly number[] }> = {
  name: 'tasks',
  async prepare(db, names) {
    for (let index = 0; index < 6; index += 1) await db.write(addTask, { row: taskOf(names, String(index)), ageNowMs: atMs });
    return { round: names.round };
  },
  async run(writer, { round }, side: Side) {
    const names = namesOf(round);
    const ended = await writer.all(
      Array.from({ length: 6 }, (_, index) => async () => {
        const end = { id: names.id('bg', index), outcome: 'ok' as const, content: `of ${side}`, atMs, state: 'ended' as const };
        return valueOf(await writer.write(endTask, end)) === true ? 1 : 0;
      }),
    );
    await writer.write(dropTask, { id: names.id('bg', 0) });
    await writer.write(addTask, { row: taskOf(names, `more-${side}`), ageNowMs: atMs });
    await writer.write(recordStop, { audit: names.audit(`stop-${side}`) });
    await writer.write(recordTyping, { audit: names.audit(`type-${side}`) });
    return { ended };
  },
  async check(look, { round }, [first, second]) {
    const rows = await look(`select id, state, content from background_task where id like 'bg_${round}-%'`);
    return [
      ...first.ended.flatMap((one, index) => differs(`ends of task ${index}`, one + (second.ended[index] ?? 0), 1)),
      ...differs('tasks', rows.length, 7),
      ...rows.flatMap(({ id, state, content }) =>
        (state === 'ended') === (content !== null) ? [] : [`the task ${String(id)} is ${String(state)} with ${String(content)}`],
      ),
    ];
  },
};

export const turnDrivers = [driver(growing), driver(erasing), driver(summaries), driver(tasks)];
