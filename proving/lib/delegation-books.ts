import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { onPostgres, sql } from '@gatehouse/testkit/sql';
import * as z from 'zod';

/** The records of delegated work in a daemon's database; read while the daemon runs, or after its death. */
export interface Books {
  readonly runs: readonly z.output<typeof Run>[];
  readonly graphs: readonly z.output<typeof Graph>[];
  readonly nodes: readonly z.output<typeof Node>[];
  readonly sends: readonly z.output<typeof Send>[];
  readonly roots: readonly z.output<typeof Root>[];
  readonly leases: readonly z.output<typeof Lease>[];
  /** Work that has not ended. */
  readonly openWork: readonly z.output<typeof Work>[];
  readonly runningTurns: readonly z.output<typeof Turn>[];
  readonly inbox: readonly z.output<typeof Message>[];
  readonly said: readonly z.output<typeof Said>[];
}

const Run = z.object({
  id: z.string(),
  parent_run_id: z.string().nullable(),
  graph_id: z.string().nullable(),
  node_id: z.string().nullable(),
  root_run_id: z.string(),
  task: z.string(),
  state: z.string(),
  end_reason: z.string().nullable(),
  error_kind: z.string().nullable(),
  result_text: z.string().nullable(),
  announce_to: z.string(),
  announced: z.string(),
  queued_at_ms: z.number(),
});
const Graph = z.object({ id: z.string(), label: z.string().nullable(), state: z.string(), cancel_reason: z.string().nullable() });
const Node = z.object({ graph_id: z.string(), node_id: z.string(), state: z.string(), attempt: z.number(), error: z.string().nullable() });
const Send = z.object({ id: z.string(), text: z.string(), mode: z.string(), state: z.string(), leg: z.number(), announced: z.number() });
const Root = z.object({ id: z.string(), state: z.string(), open_runs: z.number(), open_graphs: z.number(), open_scripts: z.number() });
const Lease = z.object({ id: z.string(), run_id: z.string(), ended_at_ms: z.number().nullable() });
const Work = z.object({ id: z.string(), kind: z.string(), work_key: z.string(), state: z.string() });
const Turn = z.object({ id: z.string(), origin: z.string() });
const Message = z.object({ op_key: z.string(), text: z.string() });
const Said = z.object({ conversation_id: z.number(), role: z.string(), content: z.string() });

/** What is read of each table, by name in the books. */
const lists = {
  runs: [Run, 'sub_agent_run'],
  graphs: [Graph, 'graph_run', "state <> 'pending'"],
  nodes: [Node, 'graph_node'],
  sends: [Send, 'session_send'],
  roots: [Root, 'root_run'],
  leases: [Lease, 'lease'],
  openWork: [Work, 'work_item', 'ended_at_ms IS NULL'],
  runningTurns: [Turn, 'turn', "state IN ('accepted', 'running')"],
  inbox: [Message, 'inbox_message'],
  said: [Said, 'message'],
} as const satisfies Record<keyof Books, readonly [z.ZodObject, string, string?]>;

const AllBooks = z.object({
  runs: Run.array(),
  graphs: Graph.array(),
  nodes: Node.array(),
  sends: Send.array(),
  roots: Root.array(),
  leases: Lease.array(),
  openWork: Work.array(),
  runningTurns: Turn.array(),
  inbox: Message.array(),
  said: Said.array(),
});

/** Reads all books as they were at one moment. */
export async function readBooks(home: string): Promise<Books> {
  const queries = Object.entries(lists).map(([name, [{ shape }, table, where = 'true']]) => {
    const columns = Object.keys(shape).join(', ');
    return [name, `SELECT ${columns} FROM ${table} WHERE ${where}`] as const;
  });
  return AllBooks.parse(onPostgres ? await readPostgres(home, queries) : readSqlite(home, queries));
}

type NamedQueries = readonly (readonly [name: string, query: string])[];

function readSqlite(home: string, queries: NamedQueries): object {
  using db = new DatabaseSync(join(home, 'data', 'gatehouse.db'), { readOnly: true });
  db.exec('BEGIN');
  return Object.fromEntries(queries.map(([name, query]) => [name, db.prepare(query).all()]));
}

async function readPostgres(home: string, queries: NamedQueries): Promise<object> {
  const columns = queries.map(([name, query]) => `(SELECT coalesce(json_agg(one), '[]') FROM (${query}) one) AS "${name}"`);
  return (await sql(home, `SELECT ${columns.join(', ')}`))[0] ?? {};
}

/** Returns whether all accepted work is done and announced. */
export function isQuiet({ openWork }: Books): boolean {
  return openWork.length === 0;
}
