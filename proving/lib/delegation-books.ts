import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
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

export function readBooks(home: string): Books {
  const db = new DatabaseSync(join(home, 'data', 'gatehouse.db'), { readOnly: true });
  try {
    db.exec('BEGIN');
    const all = <Shape extends z.ZodObject>(shape: Shape, table: string, where = 'true'): z.output<Shape>[] =>
      shape.array().parse(db.prepare(`SELECT ${Object.keys(shape.shape).join(', ')} FROM ${table} WHERE ${where}`).all());
    return {
      runs: all(Run, 'sub_agent_run'),
      graphs: all(Graph, 'graph_run', "state <> 'pending'"),
      nodes: all(Node, 'graph_node'),
      sends: all(Send, 'session_send'),
      roots: all(Root, 'root_run'),
      leases: all(Lease, 'lease'),
      openWork: all(Work, 'work_item', 'ended_at_ms IS NULL'),
      runningTurns: all(Turn, 'turn', "state IN ('accepted', 'running')"),
      inbox: all(Message, 'inbox_message'),
      said: all(Said, 'message'),
    };
  } finally {
    db.close();
  }
}

/** Returns whether all accepted work is done and announced. */
export function isQuiet({ openWork }: Books): boolean {
  return openWork.length === 0;
}
