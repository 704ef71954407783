import { once } from '@gatehouse/contract';
import * as z from 'zod';
import { AppError } from '../../../../kernel/app-error.ts';
import { headOf } from '../../../../kernel/cut-text.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { Tool } from '../../../../runtime/tool.ts';
import { nodeResultToolName } from '../../../../runtime/tool-policy.ts';
import type { SubagentsApi } from '../../subagents/api.ts';
import { nodesOfOneRun, wholeOutput } from '../status/outputs.ts';
import { loadGraph } from '../status/read-store.ts';
import { specOf } from '../rows.ts';

const Args = once(() =>
  z.strictObject({
    node: z.string().min(1).max(128).describe('Id of a node that this one depends on.'),
    offset: z.int().min(0).default(0).describe('Characters to skip.'),
    limit: z.int().min(1).max(32_000).default(12_000),
  }),
);

/** `node_result`: lets the agents of a node read the results of its dependencies, which `context_mode: refs` only names. */
export function createNodeResultTool({
  db,
  subagents,
}: {
  readonly db: Db;
  readonly subagents: Pick<SubagentsApi, 'said'>;
}): Tool<ReturnType<typeof Args>> {
  return {
    name: nodeResultToolName,
    description: 'Reads the complete result of a node of your graph that your own node depends on, in parts.',
    get args() {
      return Args();
    },
    risk: 'read',
    readsPrivate: false,
    effect: 'pure',
    timeoutMs: 10_000,
    describe: ({ node }) => `read the result of node ${node}`,
    async run({ node: wanted, offset, limit }, { call }) {
      const runId = call.agentCaller?.turn?.run?.runId;
      const own = runId === undefined ? undefined : (await subagents.said(runId))?.node;
      const graph = own === undefined ? undefined : await db.read(loadGraph, { id: own.graphId });
      const spec = graph === undefined ? undefined : specOf(graph.row).nodes.find(({ id }) => id === own?.nodeId);
      const node = spec?.dependsOn.includes(wanted) === true ? graph?.nodes.find(({ nodeId }) => nodeId === wanted) : undefined;
      if (graph === undefined || node === undefined || node.state !== 'completed')
        throw new AppError('not_found', `There is no result of a node "${wanted}" that your node depends on`, { param: 'node' });
      const { text = '' } = (await wholeOutput(node, nodesOfOneRun(graph.row).has(wanted), subagents)) ?? {};
      const part = headOf(text.slice(offset), limit);
      const left = Math.max(0, text.length - offset - part.length);
      return {
        content: `${part}\n[characters ${offset} to ${offset + part.length} of ${text.length}${left === 0 ? '' : `, ${left} more`}]`,
        outside: { source: 'sub-agent', clean: node.tainted === 0 },
      };
    },
  };
}
