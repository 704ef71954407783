import { query, type Tx } from '../../../../kernel/db/operation.ts';
import { type StoredRecord, textFact } from '../records.ts';
import type { DurableRows, LeaseFacts, RunFacts } from './material.ts';

/** Consecutive failed turns from which a skill counts as failing. */
const failingStreak = 3;

interface About {
  readonly conversationRef: string | null;
  readonly agentId: string | null;
  readonly turnId: string | undefined;
  readonly traceId: string | null;
  readonly rootRunId: string | null;
  readonly execution: readonly StoredRecord[];
}

type TurnFacts = NonNullable<DurableRows['turn']>;

const turnById = query<{ id: string }, TurnFacts>(({ db, p }) =>
  db.selectFrom('turn').select(['id', 'state', 'finishReason', 'failureKind']).where('id', '=', p('id')),
);

const lastTurn = query<{ ref: string }, TurnFacts>(({ db, p }) =>
  db
    .selectFrom('message')
    .innerJoin('conversation', 'conversation.id', 'message.conversationId')
    .innerJoin('turn', 'turn.id', 'message.turnId')
    .select(['turn.id', 'turn.state', 'turn.finishReason', 'turn.failureKind'])
    .where('conversation.ref', '=', p('ref'))
    .orderBy('message.seq', 'desc')
    .limit(1),
);

const approvalsOf = query<{ conversationRef: string; traceId: string }, DurableRows['approvals'][number]>(({ db, p }) =>
  db
    .selectFrom('approval')
    .select(['id', 'tool', 'state', 'traceId'])
    .where('conversationRef', '=', p('conversationRef'))
    .where((where) => where.or([where('state', '=', 'pending'), where('traceId', '=', p('traceId'))]))
    .orderBy('id')
    .limit(50),
);

const rootById = query<{ id: string }, NonNullable<DurableRows['root']>>(({ db, p }) =>
  db.selectFrom('rootRun').select(['id', 'state', 'spentNano as costNano']).where('id', '=', p('id')),
);

const runsOf = query<{ rootRunId: string }, RunFacts>(({ db, p }) =>
  db
    .selectFrom('subAgentRun')
    .select(['id', 'leaseId', 'state', 'endReason', 'errorKind'])
    .where('rootRunId', '=', p('rootRunId'))
    .orderBy('id')
    .limit(200),
);

const ownRun = query<{ conversationRef: string }, RunFacts>(({ db, p }) =>
  db
    .selectFrom('subAgentRun')
    .select(['id', 'leaseId', 'state', 'endReason', 'errorKind'])
    .where('conversationRef', '=', p('conversationRef'))
    .orderBy('id', 'desc')
    .limit(1),
);

const leasesOf = query<{ rootRunId: string }, LeaseFacts>(({ db, p }) =>
  db
    .selectFrom('lease')
    .select(['id', 'parentLeaseId', 'runId', 'agentId', 'caps', 'revoked'])
    .where('rootRunId', '=', p('rootRunId'))
    .orderBy('issuedAtMs')
    .orderBy('id')
    .limit(200),
);

const failedNodes = query<{ graphId: string }, DurableRows['failedNodes'][number]>(({ db, p }) =>
  db
    .selectFrom('graphNode')
    .select(['graphId', 'nodeId', 'error'])
    .where('graphId', '=', p('graphId'))
    .where('state', '=', 'failed')
    .orderBy('place')
    .limit(20),
);

const failingSkills = query<{ agentId: string; streak: number }, { name: string; streak: number }>(({ db, p }) =>
  db
    .selectFrom('skillStat')
    .select(['name', 'streak'])
    .where('agentId', '=', p('agentId'))
    .where('streak', '<=', p('streak'))
    .orderBy('name')
    .limit(50),
);

const oneMemory = query<{ agentId: string }, { id: string }>(({ db, p }) =>
  db.selectFrom('memory').select('id').where('agentId', '=', p('agentId')).limit(1),
);

const deliveriesOf = query<{ conversationRef: string; turnId: string }, DurableRows['deliveries'][number]>(({ db, p }) =>
  db
    .selectFrom('outboundMessage')
    .select(['id', 'instance', 'state'])
    .where('conversationRef', '=', p('conversationRef'))
    .where('turnId', '=', p('turnId'))
    .orderBy('id')
    .limit(200),
);

export async function readDurableRows(tx: Tx, about: About): Promise<DurableRows> {
  const { conversationRef, agentId, rootRunId } = about;
  const own = conversationRef === null ? undefined : await tx.get(ownRun, { conversationRef });
  const runs = rootRunId === null ? [] : await tx.all(runsOf, { rootRunId });
  const graphIds = new Set(
    about.execution.flatMap(({ refs, steps }) => [refs['graphId'], ...steps.map(({ facts }) => textFact(facts?.['graphId']))]),
  );
  const nodes = [];
  for (const graphId of [...graphIds].filter((id) => id !== undefined).toSorted()) nodes.push(...(await tx.all(failedNodes, { graphId })));
  const skills = agentId === null ? [] : await tx.all(failingSkills, { agentId, streak: -failingStreak });
  return {
    turn: await readTurn(tx, about),
    approvals: conversationRef === null ? [] : await tx.all(approvalsOf, { conversationRef, traceId: about.traceId ?? '' }),
    root: rootRunId === null ? undefined : await tx.get(rootById, { id: rootRunId }),
    runs: own === undefined || runs.some(({ id }) => id === own.id) ? runs : [...runs, own],
    leases: rootRunId === null ? [] : await tx.all(leasesOf, { rootRunId }),
    failedNodes: nodes,
    failingSkills: skills.map(({ name, streak }) => ({ name, failures: -streak })),
    deliveries: conversationRef === null || about.turnId === undefined ? [] : await tx.all(deliveriesOf, { conversationRef, turnId: about.turnId }),
    hasMemories: agentId !== null && (await tx.get(oneMemory, { agentId })) !== undefined,
  };
}

async function readTurn(tx: Tx, { turnId, conversationRef }: About): Promise<TurnFacts | undefined> {
  if (turnId !== undefined) return tx.get(turnById, { id: turnId });
  return conversationRef === null ? undefined : tx.get(lastTurn, { ref: conversationRef });
}
