import { AppError } from '../../../../kernel/app-error.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { DialRules } from '../../../../kernel/checked-dial.ts';
import { createGuardedFetch } from '../../../../kernel/guarded-fetch.ts';
import type { JailedProcess } from '../../../../kernel/jail.ts';
import type { McpServerConfig } from '../config.ts';
import { brokenOff, type OpenTransport } from './connection.ts';
import { createFloodGuard } from './flood-guard.ts';
import { StdioTransport } from './stdio-transport.ts';

export interface TransportDeps {
  readonly clock: Clock;
  /** Starts the program of a stdio server in its jail. */
  startProcess(config: McpServerConfig): Promise<JailedProcess>;
  readonly onErrorOutput: (text: string) => void;
  /** Replaces the network in tests. */
  readonly dial?: Pick<DialRules, 'resolve' | 'allowAddresses'>;
  /** Ports allowed for a server that is not in the configuration file. */
  readonly anyPort: boolean;
}

const maxMessageBytes = 4 * 1024 * 1024;
const maxConnections = 32;
const maxFailures = 3;
const goodbyeMs = 1000;

export async function openTransport(config: McpServerConfig, deps: TransportDeps, onLost: (reason: string) => void): Promise<OpenTransport> {
  const sdk = await import('@modelcontextprotocol/client');
  const flood = createFloodGuard(deps.clock);
  if (config.transport === 'stdio') {
    const transport = new StdioTransport({
      start: () => deps.startProcess(config),
      parse: sdk.parseJSONRPCMessage,
      flood,
      after: deps.clock.after,
      onErrorOutput: deps.onErrorOutput,
    });
    return { transport, failure: () => undefined, leave: async () => {}, dispose: async () => {} };
  }

  const url = new URL(config.url ?? '');
  const port = url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port);
  const guarded = createGuardedFetch({
    ...deps.dial,
    ...(deps.anyPort && { ports: [port] }),
    ...(config.allowPrivate && { allowHosts: [`${url.hostname}:${port}`, `${url.hostname.replaceAll(/[[\]]/g, '')}:${port}`] }),
    origin: url.origin,
    maxBytes: maxMessageBytes,
    timeoutMs: config.timeoutMs + 5000,
    maxConnections,
    onBytes: flood.bytes,
  });
  let failures = 0;
  let failure: AppError | undefined;
  function failed(reason: string): void {
    failures += 1;
    if (failures >= maxFailures) onLost(reason);
  }
  async function watchedFetch(target: string | URL, init?: RequestInit): Promise<Response> {
    let answer: Response;
    try {
      answer = await guarded.fetch(target, init);
    } catch (error) {
      if (init?.signal?.aborted === true) throw error;
      failure = error instanceof AppError ? error : new AppError('unavailable', 'The server cannot be reached', { cause: error });
      failed(failure.message);
      throw failure;
    }
    const inSession = new Headers(init?.headers).has('mcp-session-id');
    if (answer.status === 404 && init?.method === 'POST' && inSession) onLost('The server no longer knows the session');
    if (answer.status >= 500) failed(`The server answers with status ${answer.status}`);
    else {
      failures = 0;
      failure = undefined;
    }
    return answer;
  }

  const options = { fetch: watchedFetch, requestInit: { headers: { ...config.headers } } };
  const transport =
    config.transport === 'sse'
      ? new sdk.SSEClientTransport(url, options)
      : new sdk.StreamableHTTPClientTransport(url, {
          ...options,
          reconnectionOptions: {
            initialReconnectionDelay: 1000,
            maxReconnectionDelay: 30_000,
            reconnectionDelayGrowFactor: 1.5,
            maxRetries: maxFailures,
          },
        });
  if (transport instanceof sdk.StreamableHTTPClientTransport) {
    const send = transport.send.bind(transport);
    transport.send = (message, given) =>
      send(message, {
        ...given,
        onRequestStreamEnd() {
          // After the answer has arrived, nobody listens to this error.
          if ('id' in message && 'method' in message && message.id !== undefined)
            transport.onmessage?.({ jsonrpc: '2.0', id: message.id, error: { code: sdk.INTERNAL_ERROR, message: brokenOff } });
        },
      });
  }
  // The stream of this transport is its session: a stream that the library reopens belongs to no session.
  transport.onerror = (error) => {
    if (error instanceof sdk.SseError) onLost('The stream of the server ended');
  };
  transport.onmessage = () => {
    try {
      flood.message();
    } catch (error) {
      onLost(error instanceof AppError ? error.message : 'The server sends too much');
    }
  };
  return {
    transport,
    failure: () => failure,
    async leave() {
      if (!(transport instanceof sdk.StreamableHTTPClientTransport)) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      const cancel = deps.clock.after(goodbyeMs, resolve);
      await Promise.race([transport.terminateSession(), promise]);
      cancel();
    },
    dispose: async () => guarded[Symbol.asyncDispose](),
  };
}
