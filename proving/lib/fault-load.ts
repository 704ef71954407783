import { pause } from './daemon.ts';
import { bearer, http, type HttpReply } from './http.ts';
import { answerTo, askWith, nonceOf } from './provider.ts';
import type { RpcTarget } from './rpc.ts';

/** What the clients of a daemon send while its database fails. */
export const kinds = ['v1', 'v1-stream', 'turn', 'token', 'hook', 'job'] as const;
export type Kind = (typeof kinds)[number];

/** `unknown`: the answer says that it is not known whether the change was kept. */
export type Outcome = 'acknowledged' | 'refused' | 'unknown';

export interface Sent {
  readonly kind: Kind;
  readonly nonce: string;
  readonly outcome: Outcome;
  /** Id of a completion. */
  readonly id: string | undefined;
}

/** Clients of each kind, one request after the other. */
export interface FaultLoad {
  readonly sent: readonly Sent[];
  /** Answers that are neither an acknowledgement nor a refusal as it should be. */
  readonly wrong: readonly string[];
  count(outcome: Outcome): number;
  /** Resolves when every request is answered. */
  stop(): Promise<void>;
}

const paceMs = 10;
/** Jobs that a fault has made late start 5 s apart: more of them only make the end wait. */
const jobPaceMs = 1_000;
/** A call may wait for the database several times. */
const answerMs = 60_000;

export const webhookMapping = { id: 'item', sessionKey: '{{nonce}}', messageTemplate: askWith('{{nonce}}'), allowUnauthenticated: true };

export function startFaultLoad(target: RpcTarget, mark: string, only: readonly Kind[] = kinds): FaultLoad {
  const sent: Sent[] = [];
  const wrong: string[] = [];
  let isOver = false;
  const client = async (kind: Kind): Promise<void> => {
    for (let n = 0; !isOver; n += 1) {
      const nonce = nonceOf([mark, kind, n]);
      try {
        const reply = await send(target, kind, nonce);
        const outcome = outcomeOf(kind, reply, nonce);
        if (outcome === undefined) wrong.push(`${nonce} was answered ${reply.status} ${reply.text.slice(0, 300)}`);
        else sent.push({ kind, nonce, outcome, id: /"id":"(chatcmpl-[^"]+)"/.exec(reply.text)?.[1] });
      } catch (error) {
        wrong.push(`${nonce}: ${String(error)}`);
      }
      await pause(kind === 'job' ? jobPaceMs : paceMs);
    }
  };
  const done = Promise.all(only.map(client));
  return {
    sent,
    wrong,
    count: (outcome) => sent.filter((one) => one.outcome === outcome).length,
    async stop() {
      isOver = true;
      await done;
    },
  };
}

export function callRpc({ port, token }: RpcTarget, method: string, params: object): Promise<HttpReply> {
  return http({ port, path: '/rpc', headers: bearer(token), body: { jsonrpc: '2.0', id: 1, method, params }, timeoutMs: answerMs });
}

function send(target: RpcTarget, kind: Kind, nonce: string): Promise<HttpReply> {
  const { port, token } = target;
  const message = askWith(nonce);
  if (kind === 'turn') return callRpc(target, 'agent.execute', { message, sessionKey: `${nonce}:faults` });
  if (kind === 'token') return callRpc(target, 'tokens.create', { id: nonce, scopes: ['rpc'] });
  if (kind === 'job')
    return callRpc(target, 'cron.add', { name: nonce, schedule: { kind: 'in', seconds: 1 }, payload: { kind: 'agent_turn', message } });
  if (kind === 'hook') return http({ port, path: '/hooks/item', body: { nonce }, timeoutMs: answerMs });
  const body = { model: 'default', messages: [{ role: 'user', content: message }], stream: kind === 'v1-stream' };
  return http({ port, path: '/v1/chat/completions', headers: bearer(token), body, timeoutMs: answerMs });
}

/** Undefined for an answer that no client could act on. */
export function outcomeOf(kind: Kind, { status, headers, text }: HttpReply, nonce: string): Outcome | undefined {
  const isCall = kind === 'turn' || kind === 'token' || kind === 'job';
  const isRefused = isCall
    ? /"code":-32006,/.test(text) && (/"code":"unavailable","retryAfterMs":\d+/.test(text) || isForOperator(text))
    : (status === 503 && Number(headers['retry-after']) > 0) || (kind === 'v1-stream' && status === 200 && text.includes('data: {"error":'));
  if (isRefused) return text.includes('is not known') ? 'unknown' : 'refused';
  if (status !== 200) return undefined;
  if (isCall) return text.includes('"result":') ? 'acknowledged' : undefined;
  if (kind === 'hook') return 'acknowledged';
  return text.includes(answerTo(nonce)) && (kind === 'v1' || text.includes('"finish_reason":"stop"')) ? 'acknowledged' : undefined;
}

/** A full disk has no time at which to try again. */
const isForOperator = (text: string): boolean => text.includes('The disk of the database server');

/** How the database differs from the answers, one line each; `kept` is what was refused and stored all the same. */
export interface KeptFaults {
  readonly lost: readonly string[];
  readonly doubled: readonly string[];
  readonly kept: readonly string[];
}

/** What a load has shown. */
export interface LoadReport {
  readonly answers: Readonly<Record<Outcome, number>>;
  readonly lost: number;
  readonly doubled: number;
  readonly wrong: readonly string[];
}

export function reportOf(sent: readonly Sent[], wrong: readonly string[], { lost, doubled, kept }: KeptFaults): LoadReport {
  const count = (outcome: Outcome) => sent.filter((one) => one.outcome === outcome).length;
  return {
    answers: { acknowledged: count('acknowledged'), refused: count('refused'), unknown: count('unknown') },
    lost: lost.length,
    doubled: doubled.length,
    wrong: [...wrong, ...lost, ...doubled, ...kept.map((line) => `kept: ${line}`)],
  };
}

/** Reads the database past whatever fails. */
export type Query = <Row>(text: string) => Promise<readonly Row[]>;

/** Longer than the longest pause of work that will still be done, which is the one before its fifth attempt. */
const stuckMs = 150_000;

/**
 * Waits until nothing accepted is pending any more, however long that takes as long as there is progress, and compares the database with
 * the answers. What is pending without progress counts as lost.
 */
export async function findFaults(query: Query, sent: readonly Sent[]): Promise<KeptFaults> {
  let pending = await countPending(query);
  for (let changedAt = performance.now(); pending > 0 && performance.now() - changedAt < stuckMs;) {
    await pause(200);
    const before = pending;
    pending = await countPending(query);
    if (pending !== before) changedAt = performance.now();
  }
  const answers = await countAnswers(query);
  const tokens = new Set((await query<{ id: string }>('SELECT id FROM token')).map(({ id }) => id));
  const turns = await query<{ id: string; session_key: string; state: string; calls: number }>(
    `SELECT id, session_key, state, (SELECT count(*)::int FROM model_call WHERE turn_id = turn.id) AS calls FROM turn WHERE origin = 'v1'`,
  );
  const completed = countsOf(
    turns.filter(({ state }) => state === 'completed'),
    ({ session_key }) => session_key,
  );
  const storedOf = ({ kind, nonce, id }: Sent): number => {
    if (kind === 'token') return tokens.has(nonce) ? 1 : 0;
    if (kind === 'v1' || kind === 'v1-stream') return completed.get(`compat-api:compat:${id}`) ?? 0;
    return answers.get(nonce) ?? 0;
  };
  const lines = (found: readonly Sent[]) => found.map((one) => `${one.nonce} was ${one.outcome} and is there ${storedOf(one)} times`);
  // A refused completion has no id, so its row is known only by what remains.
  const v1 = sent.filter(({ kind }) => kind.startsWith('v1'));
  const most = v1.filter(({ outcome }) => outcome !== 'refused').length;
  const all = turns.filter(({ state }) => state === 'completed').length;
  return {
    lost: lines(sent.filter((one) => one.outcome === 'acknowledged' && storedOf(one) === 0)),
    doubled: [
      ...lines(sent.filter((one) => storedOf(one) > 1)),
      ...turns.filter(({ calls }) => calls > 1).map(({ id, calls }) => `turn ${id} was paid ${calls} times`),
    ],
    kept: [
      ...lines(sent.filter((one) => one.outcome === 'refused' && storedOf(one) > 0)),
      ...(all > most ? [`${all} completions are stored of ${most} that were not refused`] : []),
    ],
  };
}

/** A job becomes a work item in one commit, so nothing is missed in between. */
async function countPending(query: Query): Promise<number> {
  const [found] = await query<{ count: number }>(
    `SELECT (SELECT count(*) FROM work_item WHERE state NOT IN ('done', 'failed', 'aborted', 'unknown'))::int
      + (SELECT count(*) FROM cron_job WHERE name LIKE 'nonce-%' AND state <> 'one_shot_terminal')::int AS count`,
  );
  return found?.count ?? 0;
}

async function countAnswers(query: Query): Promise<ReadonlyMap<string, number>> {
  const rows = await query<{ content: string }>(`SELECT content FROM message WHERE role = 'assistant'`);
  return countsOf(rows, ({ content }) => /^noted (nonce-\S+-end)$/.exec(content)?.[1] ?? '');
}

function countsOf<Row>(rows: readonly Row[], key: (row: Row) => string): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const row of rows) counts.set(key(row), (counts.get(key(row)) ?? 0) + 1);
  return counts;
}
