import {
  createMcpHandler,
  isInitializeRequest,
  isLegacyRequest,
  ProtocolErrorCode,
  type Server,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';
import { AppError } from '../../kernel/app-error.ts';
import type { CallContext } from '../../kernel/call-context.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Log } from '../../kernel/log.ts';
import type { HttpCall } from '../http-call.ts';
import { toWebRequest } from './web-response.ts';
import type { McpOffer } from './offer.ts';
import { createProtocol, type ProtocolDeps } from './protocol.ts';
import { createSessions, type SessionLimits } from './sessions.ts';

export interface McpEndpointDeps {
  readonly offer: McpOffer;
  readonly limits: SessionLimits;
  readonly version: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly keepAliveMs?: number | undefined;
}

/** The MCP endpoint behind its route: all versions of the protocol that the SDK supports. Loaded when the first client connects. */
export interface McpEndpoint extends AsyncDisposable {
  /** `body` is the parsed body of a POST. Call `done` when the response was sent. */
  serve(call: HttpCall, body: unknown): Promise<{ readonly response: Response; readonly done: () => void }>;
  /** Ends the sessions of a token that is no longer valid. */
  endToken(tokenId: string): void;
  readonly sessions: number;
}

interface Connection {
  readonly server: Server;
  readonly transport: WebStandardStreamableHTTPServerTransport;
  close(): Promise<void>;
}

const nothing = (): void => {};

export function createMcpEndpoint({ offer, limits, version, clock, log, keepAliveMs }: McpEndpointDeps): McpEndpoint {
  /** The SDK passes its handlers the request that it got, and nothing else of ours. */
  const calls = new WeakMap<Request, CallContext>();
  const batches = new WeakSet<Request>();
  const sessions = createSessions<Connection>({ clock, limits });
  const onerror = (error: Error): void => log.debug({ err: error }, 'MCP');
  const protocol = (cancelled?: ProtocolDeps['cancelled']) => createProtocol({ offer, version, log, callOf, ...(cancelled && { cancelled }) });
  const alive = keepAliveMs === undefined ? {} : { keepAliveMs };
  /** Versions from 2026-07-28 on are stateless. */
  const stateless = createMcpHandler(() => protocol(), { legacy: 'reject', onerror, ...alive });
  const unlisten = offer.onToolsChanged(() => {
    stateless.notify.toolsChanged();
    for (const { server } of sessions.connections()) void server.sendToolListChanged().catch(onerror);
  });

  function callOf(request: Request): CallContext {
    const call = calls.get(request);
    if (call === undefined) throw new AppError('internal', 'An MCP request has no call context');
    return call;
  }

  function open(id: string): Connection {
    const transport = new WebStandardStreamableHTTPServerTransport({ sessionIdGenerator: () => id, ...alive });
    const server = protocol((request, requestId) => {
      // The other requests of a batch still need their responses.
      if (!batches.has(request)) transport.closeSSEStream(requestId);
      // Removes the request from the transport's records; where the stream is closed it is not sent.
      void transport.send({ jsonrpc: '2.0', id: requestId, error: { code: ProtocolErrorCode.InternalError, message: 'Cancelled' } }).catch(onerror);
    });
    server.onerror = onerror;
    // Also called for a DELETE.
    server.onclose = () => sessions.end(id);
    return { server, transport, close: () => server.close() };
  }

  async function begin(request: Request, body: unknown, tokenId: string): Promise<Response> {
    const { id, connection } = sessions.begin(tokenId, open);
    await connection.server.connect(connection.transport);
    const response = await connection.transport.handleRequest(request, { parsedBody: body });
    // Refused: its headers did not follow the protocol.
    if (connection.transport.sessionId === undefined) sessions.end(id);
    return response;
  }

  return {
    async serve(call, body) {
      const context = call.context();
      const { tokenId } = context.identity;
      const request = toWebRequest(call);
      calls.set(request, context);
      if (Array.isArray(body)) batches.add(request);
      if (!(await isLegacyRequest(request, body))) return { response: await stateless.fetch(request, { parsedBody: body }), done: nothing };
      const id = request.headers.get('mcp-session-id');
      if (id === null) {
        if (isInitializeRequest(body)) return { response: await begin(request, body, tokenId), done: nothing };
        throw new AppError('invalid_envelope', 'Mcp-Session-Id: expected the session that an initialize request began', { param: 'Mcp-Session-Id' });
      }
      const session = sessions.use(id, tokenId);
      if (session === undefined) throw new AppError('not_found', 'Session not found');
      try {
        const { transport } = session.connection;
        return { response: await transport.handleRequest(request, body === undefined ? {} : { parsedBody: body }), done: session.leave };
      } catch (error) {
        session.leave();
        throw error;
      }
    },
    endToken: sessions.endAllOf,
    get sessions() {
      return sessions.size;
    },
    async [Symbol.asyncDispose]() {
      unlisten();
      await Promise.all([sessions.close(), stateless.close()]);
    },
  };
}
