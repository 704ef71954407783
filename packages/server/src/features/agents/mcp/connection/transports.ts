import type * as McpClient from '@modelcontextprotocol/client';
import { AppError } from '../../../../kernel/app-error.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { DialRules } from '../../../../kernel/checked-dial.ts';
import { createGuardedFetch } from '../../../../kernel/guarded-fetch.ts';
import type { JailedProcess } from '../../../../kernel/jail.ts';
import { settledWithin } from '../../../../kernel/timers.ts';
import { type Access, authorizeFetch, type ReadChallenge } from '../authorization/authorized-fetch.ts';
import type { McpServerConfig } from '../config.ts';
import { brokenOff, type OnLost, type OpenTransport } from './connection.ts';
import { createFloodGuard } from './flood-guard.ts';
import { StdioTransport } from './stdio-transport.ts';
import { maxFailures, watchFetch } from './watched-fetch.ts';

export interface TransportDeps {
  readonly clock: Clock;
  /** Starts the program of a stdio server in its jail. */
  startProcess(config: McpServerConfig): Promise<JailedProcess>;
  readonly onErrorOutput: (text: string) => void;
  /** Replaces the network in tests. */
  readonly dial?: Pick<DialRules, 'resolve' | 'allowAddresses'>;
  /** How the requests are authorized; undefined when the headers decide it. */
  readonly access: Access | undefined;
  /** Ports allowed for a server that is not in the configuration file. */
  readonly anyPort: boolean;
}

const maxMessageBytes = 4 * 1024 * 1024;
const maxConnections = 32;
const goodbyeMs = 1000;

/** The SDK is large, and most installations have no MCP server. */
type Sdk = typeof McpClient;

export async function openTransport(config: McpServerConfig, deps: TransportDeps, onLost: OnLost): Promise<OpenTransport> {
  const sdk = await import('@modelcontextprotocol/client');
  return config.transport === 'stdio' ? openStdio(sdk, config, deps) : openHttp(sdk, config, deps, onLost);
}

function openStdio(sdk: Sdk, config: McpServerConfig, deps: TransportDeps): OpenTransport {
  const transport = new StdioTransport({
    start: () => deps.startProcess(config),
    parse: sdk.parseJSONRPCMessage,
    flood: createFloodGuard(deps.clock),
    after: deps.clock.after,
    onErrorOutput: deps.onErrorOutput,
  });
  return { transport, failure: () => undefined, leave: async () => {}, dispose: async () => {} };
}

function openHttp(sdk: Sdk, config: McpServerConfig, deps: TransportDeps, onLost: OnLost): OpenTransport {
  const flood = createFloodGuard(deps.clock);
  const url = new URL(config.url ?? '');
  const guarded = createGuardedFetch({ ...fetchRules(url, config, deps), onBytes: flood.bytes });
  const watched = watchFetch(deps.access === undefined ? guarded.fetch : authorizeFetch(guarded.fetch, deps.access, readChallenge(sdk)), onLost);
  const options = { fetch: watched.fetch, requestInit: { headers: { ...config.headers } } };
  const transport = config.transport === 'sse' ? new sdk.SSEClientTransport(url, options) : openStreamable(sdk, url, options);
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
    failure: watched.failure,
    async leave() {
      if (transport instanceof sdk.StreamableHTTPClientTransport) await settledWithin(deps.clock, goodbyeMs, [transport.terminateSession()]);
    },
    dispose: async () => guarded[Symbol.asyncDispose](),
  };
}

function readChallenge(sdk: Sdk): ReadChallenge {
  return (answer) => {
    if (!/^(?:bearer|dpop)\b/i.test(answer.headers.get('www-authenticate') ?? '')) return undefined;
    const { resourceMetadataUrl, scope, error } = sdk.extractWWWAuthenticateParams(answer);
    return { resourceMetadataUrl, scope, error };
  };
}

function fetchRules(url: URL, config: McpServerConfig, deps: TransportDeps) {
  const port = url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port);
  return {
    ...deps.dial,
    ...(deps.anyPort && { ports: [port] }),
    ...(config.allowPrivate && { allowHosts: [`${url.hostname}:${port}`, `${url.hostname.replaceAll(/[[\]]/g, '')}:${port}`] }),
    origin: url.origin,
    maxBytes: maxMessageBytes,
    timeoutMs: config.timeoutMs + 5000,
    maxConnections,
  };
}

function openStreamable(sdk: Sdk, url: URL, options: McpClient.StreamableHTTPClientTransportOptions): McpClient.StreamableHTTPClientTransport {
  const transport = new sdk.StreamableHTTPClientTransport(url, {
    ...options,
    reconnectionOptions: {
      initialReconnectionDelay: 1000,
      maxReconnectionDelay: 30_000,
      reconnectionDelayGrowFactor: 1.5,
      maxRetries: maxFailures,
    },
  });
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
  return transport;
}
