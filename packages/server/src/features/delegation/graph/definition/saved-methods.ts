import { announceAudit, auditRow } from '../../../../kernel/audit.ts';
import { type CallContext, ownerOf } from '../../../../kernel/call-context.ts';
import type { HandlersOf } from '../../../../kernel/handlers.ts';
import { newId } from '../../../../kernel/ids.ts';
import { checkGraph, invalid, storedForm } from './input.ts';
import { savedNotFound, savedReachOf } from '../status/reach.ts';
import { parseDefinition } from '../rows.ts';
import { deleteSaved, findSaved, findSavedLabel, listSaved, saveGraph, type SavedRow } from './saved-store.ts';
import type { StartDeps } from '../run/start/start.ts';
import { keepLoaded } from '../store.ts';
import { definitionView } from '../status/view.ts';

export type SavedMethods = HandlersOf<`graph.${'save' | 'load' | 'list' | 'delete'}`>;

interface SavedDeps extends StartDeps {
  readonly admitChange: (call: CallContext) => void;
}

/** Creates the methods for saved graphs. */
export function createSavedMethods(deps: SavedDeps): SavedMethods {
  const { db, bus, clock } = deps;

  async function found(id: string, call: CallContext, isChange: boolean): Promise<SavedRow> {
    const row = await db.read(findSaved, { id, ...savedReachOf(call, isChange) });
    if (row === undefined) throw savedNotFound();
    return row;
  }

  const shown = ({ id, label, createdAtMs, updatedAtMs, nodeCount, agentId }: SavedRow) => ({
    id,
    label,
    createdAt: createdAtMs,
    updatedAt: updatedAtMs,
    nodeCount,
    ...(agentId !== null && { agentId }),
  });

  return {
    'graph.save': async ({ id, agentId: wanted, ...input }, call) => {
      deps.admitChange(call);
      const { spec, warnings } = checkGraph({ ...input, defaultAgentId: wanted }, undefined, call, deps);
      const caller = call.agentCaller;
      if (wanted !== undefined) {
        if (caller !== undefined && wanted !== caller.agentId)
          throw invalid([{ path: 'agentId', message: `expected "${caller.agentId}": an agent can only save graphs for itself` }]);
        deps.agents.usable(wanted, call);
      }
      // An agent that saves under the same name again replaces the earlier graph.
      const own = caller === undefined || id !== undefined ? undefined : { principalId: ownerOf(call), agentId: caller.agentId, label: input.label };
      const formerId = own === undefined ? id : await db.read(findSavedLabel, own);
      const former = formerId === undefined ? undefined : await found(formerId, call, true);
      const atMs = clock.now();
      const row: SavedRow = {
        id: former?.id ?? newId('sg'),
        principalId: former?.principalId ?? ownerOf(call),
        agentId: wanted ?? caller?.agentId ?? null,
        label: input.label,
        definitionJson: JSON.stringify(storedForm(input)),
        nodeCount: spec.nodes.length,
        createdAtMs: former?.createdAtMs ?? atMs,
        updatedAtMs: atMs,
      };
      const audit = auditRow(call, atMs, { actionType: 'graph.save', classification: 'mutate', target: row.id });
      if (!(await db.write(saveGraph, { row, isNew: former === undefined, audit }))) throw savedNotFound();
      announceAudit(bus, audit);
      return { id: row.id, saved: true, warnings };
    },

    'graph.load': async ({ id }, call) => {
      deps.admitChange(call);
      const row = await found(id, call, false);
      // Nodes without an agent are done by the agent that the graph was saved for, or by the agent that loads it.
      const defaultAgentId = call.agentCaller === undefined ? (row.agentId ?? undefined) : undefined;
      const definition = { ...parseDefinition(row.definitionJson), ...(defaultAgentId !== undefined && { defaultAgentId }) };
      const { spec, warnings } = checkGraph(definition, undefined, call, deps);
      const graphId = newId('gr');
      await db.write(keepLoaded, {
        id: graphId,
        principalId: ownerOf(call),
        tokenId: call.identity.tokenId,
        agentId: call.agentCaller?.agentId ?? row.agentId ?? deps.agents.defaultId,
        label: row.label,
        definitionJson: JSON.stringify(definition),
        variablesJson: '{}',
        nodeCount: spec.nodes.length,
        rootRunId: null,
        requesterJson: null,
        byAgent: Number(call.agentCaller !== undefined),
        announceJson: JSON.stringify({ to: 'inbox' }),
        nodeProgress: 0,
        workId: null,
        state: 'pending',
        cancelReason: null,
        createdAtMs: clock.now(),
        startedAtMs: null,
        endedAtMs: null,
        waitedMs: 0,
      });
      return { ...shown(row), ...definitionView(row.definitionJson), graphId, warnings };
    },

    'graph.list': async ({ offset, limit }, call) => {
      const { isChange: _, ...reach } = savedReachOf(call, false);
      const { rows, total } = await db.read(listSaved, { ...reach, offset, limit });
      return { entries: rows.map((row) => ({ ...shown(row), name: row.label })), total, offset, limit, hasMore: offset + rows.length < total };
    },

    'graph.delete': async ({ id }, call) => {
      deps.admitChange(call);
      const row = await found(id, call, true);
      const audit = auditRow(call, clock.now(), { actionType: 'graph.delete', classification: 'destructive', target: row.id });
      if (!(await db.write(deleteSaved, { id: row.id, audit }))) throw savedNotFound();
      announceAudit(bus, audit);
      return { id: row.id, deleted: true };
    },
  };
}
