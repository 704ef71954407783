import { closeWindow, forgetFiles, markFiles, openWindow } from '../../../packages/server/src/features/environment/workspace/taint/taint-store.ts';
import { cacheVector, clearCachedVectors } from '../../../packages/server/src/features/knowledge/memory/embeddings/embedding-cache-store.ts';
import { markRefused, storeVectors } from '../../../packages/server/src/features/knowledge/memory/embeddings/embedding-store.ts';
import {
  deleteMemories,
  flushMemories,
  lastMemory,
  storeMemory,
} from '../../../packages/server/src/features/knowledge/memory/entries/browse-store.ts';
import { applyLifecycle, countUses } from '../../../packages/server/src/features/knowledge/memory/lifecycle/life-store.ts';
import {
  keepDerived,
  markExamined,
  strengthenDerived,
} from '../../../packages/server/src/features/knowledge/memory/lifecycle/review/derive-store.ts';
import { forgetSkill, keepSkill, saveStats } from '../../../packages/server/src/features/knowledge/skills/store.ts';
import { commitTurn } from '../../../packages/server/src/transactions/commit-turn.ts';
import { failReview, keepReview } from '../../../packages/server/src/transactions/review-conversation.ts';
import { atMs, count, differs, driver, type Driver, type Names, namesOf, principalId, quote, type Side, valueOf, liveBoot } from './driver.ts';
import { type PutKnowledgeFile, removeKnowledgeFiles, touchKnowledgeFile } from '../../../packages/server/src/features/knowledge/sources/store.ts';
import { putKnowledgeFile } from '../../../packages/server/src/transactions/put-knowledge-file.ts';
import { memoryOf, messagesOf, turnOf } from './rows.ts';

interface Round {
  readonly round: string;
}

const entries = 6;

interface Kept {
  readonly derived: number;
  readonly strengthened: number;
  readonly deleted: number;
  readonly reviewed: number;
}

/** Entries that both derive from, prove, count, embed, move and delete. */
const memories: Driver<Round & { readonly seq: number }, Kept> = {
  name: 'memories',
  async prepare(db, names) {
    for (let index = 0; index < entries; index += 1) await db.write(storeMemory, { memory: memoryOf(names, index), audit: undefined });
    const derived = memoryOf(names, 'derived', { cites: [{ sourceId: names.id('m', 'gone') }] });
    await db.write(storeMemory, { memory: derived, audit: undefined });
    const turn = turnOf(names, 0, names.ref(0));
    await db.write(commitTurn, { turn, calls: [], conversation: messagesOf(names, turn.id, names.ref(0)) });
    const seq = await db.read(lastMemory, {});
    return { round: names.round, seq };
  },
  async run(writer, { round, seq }, side: Side) {
    const names = namesOf(round);
    const agentId = names.id('agent', 0);
    const id = (index: number | string) => names.id('m', index);
    const review = { agentId, conversationRef: names.ref(0), toSeq: 2, atMs, lastTurnId: names.id('tn', 0) };
    const [derived, strengthened, reviewed] = await writer.all([
      () =>
        writer.write(keepDerived, {
          memory: memoryOf(names, `of-two-${side}`, { cites: [{ sourceId: id(0) }, { sourceId: id(1) }] }),
          sourceIds: [id(0), id(1)],
          atMs,
        }),
      () => writer.write(strengthenDerived, { derivedId: id('derived'), source: { id: id(2), conversationRef: null }, atMs }),
      () => writer.write(keepReview, { ...review, memories: [memoryOf(names, `reviewed-${side}`)], seenAgain: [id('derived')] }),
    ]);
    await writer.race([
      ...[0, 1, 2].map(() => () => writer.write(countUses, { counts: [{ id: id(3), agentId, uses: 1, failures: 1, atMs }] })),
      () => writer.write(applyLifecycle, { actions: [{ kind: 'promote', id: id(3), to: 'episodic', reason: 'used' }], plannedAtMs: atMs }),
      () => writer.write(applyLifecycle, { actions: [{ kind: 'demote', id: id(4), reason: 'failures' }], plannedAtMs: atMs }),
      () => writer.write(markExamined, { agentId, seq, atMs }),
      () => writer.write(failReview, { ...review, lastTurnId: 'gone' }),
      () =>
        writer.write(storeVectors, {
          fingerprint: 'hammer/model/4',
          rows: [{ seq, updatedAtMs: null, vector: new Float32Array([1, 0, 0, side]) }],
        }),
      () => writer.write(markRefused, { seq: seq - 1, updatedAtMs: null, fingerprint: 'hammer/model/4' }),
      () => writer.write(storeMemory, { memory: memoryOf(names, `more-${side}`), audit: names.audit(`store-${side}`) }),
      () => {
        const entry = { fingerprint: 'hammer/model/4', textHash: new Uint8Array([1, 2, 3]), vector: new Uint8Array([side]), usedAtMs: atMs };
        return writer.telemetry(cacheVector, entry);
      },
      () => writer.telemetry(clearCachedVectors, {}),
    ]);
    const deleted = await writer.write(deleteMemories, {
      ids: [id(5)],
      reach: { agentIds: null, principalId: null },
      audit: names.audit(`delete-${side}`),
    });
    await writer.write(flushMemories, { agentIds: [names.id('agent', 'none')], lastSeq: seq, audit: names.audit(`flush-${side}`) });
    const did = (outcome: typeof derived) => (outcome === undefined ? 0 : count([outcome], Boolean));
    return { derived: did(derived), strengthened: did(strengthened), reviewed: did(reviewed), deleted: valueOf(deleted)?.deleted ?? 0 };
  },
  async check(look, { round }, [first, second]) {
    const names = namesOf(round);
    const id = (index: number | string) => names.id('m', index);
    const [made] = await look(`select count(*) as count from memory where id like 'm_${round}-of-two-%'`);
    const [old] = await look(`select proof_count from memory where id = ${quote(id('derived'))}`);
    const [cited] = await look(`select count(*) as count from memory_source where derived_id = ${quote(id('derived'))}`);
    const [used] = await look(`select use_count, failure_count from memory where id = ${quote(id(3))}`);
    const [marks] = await look(`select count(*) as count from memory_review where conversation_ref = ${quote(names.ref(0))}`);
    const [stored] = await look(`select count(*) as count from memory where id like 'm_${round}-more-%'`);
    return [
      ...differs('entries derived from the same two', first.derived + second.derived, 1),
      ...differs('rows derived from the same two', made?.['count'], 1),
      ...differs('uses of one entry as a proof', first.strengthened + second.strengthened, 1),
      ...differs('proofs of the derived entry', old?.['proof_count'], Number(cited?.['count'])),
      ...differs('uses', used?.['use_count'], 6),
      ...differs('failures', used?.['failure_count'], 6),
      ...differs('deletions of one entry', first.deleted + second.deleted, 1),
      ...differs('marks of one review', marks?.['count'], 1),
      ...differs('entries that were stored', stored?.['count'], 2),
    ];
  },
};

/** A file of a knowledge source that both replace, touch and remove. */
const sources: Driver<Round, null> = {
  name: 'knowledge sources',
  async prepare(db, names) {
    for (const index of [0, 1]) await db.write(putKnowledgeFile, knowledgeFileOf(names, index, 'prepared', 2));
    return { round: names.round };
  },
  async run(writer, { round }, side) {
    const names = namesOf(round);
    await writer.race([
      () => writer.write(putKnowledgeFile, knowledgeFileOf(names, 0, `by-${side}`, 3)),
      () => writer.write(touchKnowledgeFile, { fileId: names.id('kf', 0), stamp: `touched by ${side}` }),
      () => writer.write(removeKnowledgeFiles, { fileIds: [names.id('kf', 1)] }),
    ]);
    return null;
  },
  async check(look, { round }) {
    const names = namesOf(round);
    const passagesOf = (index: number) =>
      look(`select count(*) as count from knowledge_passage join memory on memory.id = memory_id where file_id = ${quote(names.id('kf', index))}`);
    const [[kept], [removed]] = [await passagesOf(0), await passagesOf(1)];
    const [texts] = await look(`select count(*) as count from memory where agent_id = ${quote(`knowledge:${names.id('agent', 0)}`)}`);
    return [
      ...differs('passages of a file that both replaced', kept?.['count'], 3),
      ...differs('passages of a file that both removed', removed?.['count'], 0),
      ...differs('entries of the search index', texts?.['count'], 3),
    ];
  },
};

function knowledgeFileOf(names: Names, index: number, by: string, count: number): PutKnowledgeFile {
  const file = {
    id: names.id('kf', index),
    agentId: names.id('agent', 0),
    source: 'handbook',
    place: '/srv/handbook',
    path: `${index}.md`,
    stamp: by,
    digest: by,
    sizeBytes: 1,
    passages: count,
    problem: null,
    indexedAtMs: atMs,
  };
  const passages = Array.from({ length: count }, (_, at) => ({
    id: names.id(`kp-${by}`, `${index}-${at}`),
    content: 'head\ntext',
    part: 1,
    label: '',
  }));
  return { file, owner: `knowledge:${file.agentId}`, trusted: false, passages };
}

/** Skills and files under the same names. */
const files: Driver<Round, null> = {
  name: 'skills and files',
  prepare: (_, { round }) => Promise.resolve({ round }),
  async run(writer, { round }, side) {
    const names = namesOf(round);
    const agentId = names.id('agent', 0);
    const row = {
      owner: '',
      name: names.id('skill', 0),
      digest: `of ${side}`,
      source: 'created' as const,
      tier: 'agent' as never,
      verdict: 'safe' as const,
      forced: 0 as const,
      url: null,
      principalId,
      atMs,
    };
    const stat = { agentId, owner: '', name: row.name, uses: 1, failures: 0, streak: 1, standing: 'neutral' as const, atMs };
    const file = (path: string) => ({ path, name: path, tree: 0 as const, tainted: 1 as const, digest: names.id('digest', path) });
    const window = { id: names.id('window', side), agentId, sinceMs: atMs, bootId: liveBoot };
    await writer.write(openWindow, window);
    await writer.race([
      () => writer.write(keepSkill, { row, audits: [names.audit(`skill-${side}`)] }),
      () => writer.write(saveStats, { stats: [stat] }),
      () => writer.write(markFiles, { agentId, atMs, rows: [file('a'), file('b')] }),
      () => writer.write(closeWindow, { id: window.id, agentId, atMs, rows: [file('b'), file('c')] }),
      () => writer.write(forgetFiles, { agentId, paths: ['d'] }),
      () => writer.write(forgetSkill, { key: { owner: '', name: names.id('skill', 'none') }, audit: names.audit(`forget-${side}`) }),
    ]);
    return null;
  },
  async check(look, { round }) {
    const names = namesOf(round);
    const [skills] = await look(`select count(*) as count from skill_provenance where name = ${quote(names.id('skill', 0))}`);
    const [paths] = await look(`select count(*) as count from file_taint where agent_id = ${quote(names.id('agent', 0))}`);
    const [contents] = await look(`select count(*) as count from file_taint_content where agent_id = ${quote(names.id('agent', 0))}`);
    const [windows] = await look(`select count(*) as count from file_taint_window where agent_id = ${quote(names.id('agent', 0))}`);
    return [
      ...differs('skills of one name', skills?.['count'], 1),
      ...differs('files', paths?.['count'], 3),
      ...differs('contents', contents?.['count'], 3),
      ...differs('commands that are open', windows?.['count'], 0),
    ];
  },
};

export const knowledgeDrivers = [driver(memories), driver(sources), driver(files)];
