import { hash } from 'node:crypto';
import type { AutonomyProfile } from '@gatehouse/contract';
import { auditRow } from '../../../../../kernel/audit.ts';
import { type CallContext, ownerOf } from '../../../../../kernel/call-context.ts';
import { newId } from '../../../../../kernel/ids.ts';
import type { GraphInput, GraphSpec } from '../../definition/definition.ts';
import { storedForm } from '../../definition/input.ts';
import type { Announce, GraphRow, Requester } from '../../rows.ts';
import type { NodeChange } from '../../store.ts';
import { type GraphIntake, graphWork } from '../operations.ts';

interface CheckedGraph {
  readonly atMs: number;
  readonly agentId: string;
  readonly input: GraphInput;
  readonly variables: Readonly<Record<string, string>>;
  /** Whether the end of each node is announced. */
  readonly announcesNodes: boolean;
  readonly spec: GraphSpec;
  /** Nodes with results of an earlier run. */
  readonly kept: readonly NodeChange[];
  /** Its row when it was loaded before. */
  readonly loaded: GraphRow | undefined;
  readonly announce: Announce;
  readonly requester: Requester | undefined;
  readonly rootRunId: string;
  readonly profile: AutonomyProfile;
  readonly operationKey: string | undefined;
}

/** Returns the rows that accept a checked graph. */
export function intakeOf(call: CallContext, graph: CheckedGraph): GraphIntake {
  const { atMs, agentId, input, spec, loaded, requester, rootRunId } = graph;
  const id = loaded?.id ?? newId('gr');
  const workId = newId('wi');
  const row: GraphRow = {
    id,
    principalId: ownerOf(call),
    tokenId: call.identity.tokenId,
    agentId,
    label: input.label ?? null,
    definitionJson: JSON.stringify(storedForm(input)),
    variablesJson: JSON.stringify(graph.variables),
    nodeCount: spec.nodes.length,
    rootRunId,
    requesterJson: requester === undefined ? null : JSON.stringify(requester),
    byAgent: Number(requester !== undefined),
    announceJson: JSON.stringify(graph.announce),
    nodeProgress: Number(graph.announcesNodes),
    workId,
    state: 'running',
    cancelReason: null,
    createdAtMs: atMs,
    startedAtMs: atMs,
    endedAtMs: null,
    waitedMs: 0,
  };
  return {
    row,
    nodeIds: spec.nodes.map((node) => node.id),
    kept: graph.kept,
    wasLoaded: loaded !== undefined,
    root: {
      rootRunId,
      kind: 'graph',
      agentId,
      principalId: row.principalId,
      conversationRef: call.agentCaller?.conversationRef ?? null,
      origin: requester?.origin ?? 'rpc',
      profile: graph.profile,
      atMs,
    },
    work: {
      id: workId,
      kind: graphWork,
      key: graph.operationKey ?? id,
      digest: hash('sha256', row.definitionJson),
      agentId,
      payload: { graphId: id },
      atMs,
    },
    audit: auditRow(call, atMs, { actionType: 'graph.execute', classification: 'mutate', target: id, metadata: { nodes: row.nodeCount } }),
  };
}

/** Returns the calling turn, whose limits apply to the graph too; undefined for a token. `tainted`: it had read text from outside. */
export function requesterOf({ agentCaller }: CallContext, tainted: boolean, caps: Requester['caps']): Requester | undefined {
  if (agentCaller === undefined) return undefined;
  const { conversationRef, turn } = agentCaller;
  return {
    conversationRef,
    turnId: turn?.turnId ?? '',
    origin: turn?.origin ?? 'rpc',
    leaseId: turn?.run?.leaseId ?? null,
    runId: turn?.run?.runId ?? null,
    depth: turn?.run?.depth ?? 0,
    bounds: turn?.toolBounds,
    tainted,
    caps,
  };
}
