import type { ResultInput } from '@gatehouse/contract';
import { AppError } from '../../../../kernel/app-error.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { McpServerConfig } from '../config.ts';
import { reasonOf } from './managed-server.ts';
import type { Server, Servers } from './servers.ts';
import { buildTools } from '../tools/tool-list.ts';

const testMs = 15_000;

/** Checks whether a server is usable, over a separate connection that is always closed; a failure is a result. */
export async function testServer(
  deps: { readonly clock: Clock; readonly servers: Servers; readonly redactText: (text: string) => string },
  name: string | undefined,
  config: McpServerConfig,
  source: Server['source'],
  caller: AbortSignal,
): Promise<ResultInput<'mcp.test'>> {
  const over = new AbortController();
  const cancel = deps.clock.after(testMs, () => over.abort());
  const signal = AbortSignal.any([over.signal, caller]);
  try {
    const connection = await deps.servers.open(name, config, source, { onLost: () => over.abort(), onToolsChanged() {} }, signal);
    try {
      const latencyMs = await connection.ping(signal);
      const { tools } = await buildTools(
        await connection.listTools(signal),
        {
          server: 'test',
          identity: '',
          readOnlyTools: [],
          timeoutMs: config.timeoutMs,
          call: () => Promise.reject(new AppError('internal', 'not called')),
        },
        [],
      );
      return { success: true, latencyMs, toolCount: tools.length, tools: tools.map((tool) => tool.name) };
    } finally {
      await connection.close();
    }
  } catch (error) {
    const text = over.signal.aborted ? `The server did not answer within ${testMs} ms, or closed the connection` : reasonOf(error);
    return { success: false, error: deps.redactText(text) };
  } finally {
    cancel();
  }
}
