import { ProtocolError, ProtocolErrorCode, type RequestId, ResourceNotFoundError, Server, type ServerContext } from '@modelcontextprotocol/server';
import { AppError, toAppError } from '../../kernel/app-error.ts';
import type { CallContext } from '../../kernel/call-context.ts';
import type { Log } from '../../kernel/log.ts';
import { toRpcError } from '../error-body.ts';
import type { McpOffer, McpTool } from './offer.ts';

const toolsPerPage = 100;

const instructions =
  'Each tool agent_<id> sends a message to an agent of this Gatehouse and returns its answer; sessionKey continues a conversation. ' +
  'The resources are the files in the workspaces of the agents.';

export interface ProtocolDeps {
  readonly offer: McpOffer;
  readonly version: string;
  /** Returns the call context, fixed at the edge when the request arrived. */
  readonly callOf: (request: Request) => CallContext;
  readonly log: Log;
  /** Called for a cancelled request: the SDK no longer answers it, nor does it end the stream of its response. */
  readonly cancelled?: (request: Request, id: RequestId) => void;
}

/** Creates one protocol instance of the SDK over an offer: for a session, or for one request of the stateless versions. */
export function createProtocol({ offer, version, callOf, log, cancelled }: ProtocolDeps): Server {
  const server = new Server(
    { name: 'gatehouse', title: 'Gatehouse', version },
    { capabilities: { tools: { listChanged: true }, resources: {} }, instructions },
  );

  /** Every failure passes here: the SDK would send the message of any error. */
  async function answer<T>(context: ServerContext, work: (call: CallContext) => T | Promise<T>): Promise<T> {
    const request = context.http?.req;
    if (request === undefined) throw new ProtocolError(ProtocolErrorCode.InternalError, 'Internal error');
    const call = callOf(request);
    try {
      return await work({ ...call, signal: AbortSignal.any([call.signal, context.mcpReq.signal]) });
    } catch (failure) {
      if (failure instanceof ProtocolError) throw failure;
      logFault(failure, call);
      const { code, message, data } = toRpcError(failure, call.requestId);
      throw new ProtocolError(code, message, data);
    } finally {
      if (context.mcpReq.signal.aborted) cancelled?.(request, context.mcpReq.id);
    }
  }

  function logFault(failure: unknown, call: CallContext): void {
    if (failure instanceof AppError && failure.code !== 'internal') return;
    log.error({ requestId: call.requestId, traceId: call.traceId, err: failure }, 'A call over MCP failed');
  }

  server.setRequestHandler('tools/list', ({ params }, context) =>
    answer(context, ({ identity }) => {
      const tools = offer.tools(identity);
      const from = firstOf(tools, params?.cursor);
      const page = tools.slice(from, from + toolsPerPage);
      const last = page.at(-1);
      return {
        tools: page.map(({ about }) => about),
        ...(last !== undefined && from + page.length < tools.length && { nextCursor: last.about.name }),
      };
    }),
  );

  server.setRequestHandler('tools/call', ({ params }, context) =>
    answer(context, async (call) => {
      const tool = offer.tools(call.identity).find(({ about }) => about.name === params.name);
      if (tool === undefined) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Unknown tool: ${params.name}`);
      try {
        const result = await tool.run(params.arguments ?? {}, call, progressOf(context));
        return server.projectCallToolResult(result, tool.about.outputSchema);
      } catch (failure) {
        // In a result the client's model reads what it did wrong, and may correct it.
        logFault(failure, call);
        const { code, message } = toAppError(failure);
        return {
          isError: true,
          content: [{ type: 'text', text: `${code}: ${message}${code === 'internal' ? ` (request ${call.requestId})` : ''}` }],
        };
      }
    }),
  );

  server.setRequestHandler('resources/list', ({ params }, context) =>
    answer(context, async ({ identity }) => {
      const { items, nextCursor } = await offer.resources.list(params?.cursor, identity);
      return { resources: [...items], ...(nextCursor !== undefined && { nextCursor }) };
    }),
  );
  server.setRequestHandler('resources/templates/list', (_, context) =>
    answer(context, ({ identity }) => ({ resourceTemplates: [...offer.resources.templates(identity)] })),
  );
  server.setRequestHandler('resources/read', ({ params }, context) =>
    answer(context, async ({ identity }) => {
      const contents = await offer.resources.read(params.uri, identity);
      if (contents === undefined) throw new ResourceNotFoundError(params.uri);
      return { contents };
    }),
  );
  return server;
}

function progressOf(context: ServerContext): Parameters<McpTool['run']>[2] {
  const progressToken = context.mcpReq._meta?.progressToken;
  if (progressToken === undefined) return undefined;
  // A client that is gone gets no further notifications; its call ends by its signal.
  return (progress) => void context.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, ...progress } }).catch(() => {});
}

function firstOf(tools: readonly McpTool[], cursor: string | undefined): number {
  if (cursor === undefined) return 0;
  const at = tools.findIndex(({ about }) => about.name === cursor);
  if (at === -1) throw new AppError('invalid_params', 'cursor: expected a cursor of an earlier page', { param: 'cursor' });
  return at + 1;
}
