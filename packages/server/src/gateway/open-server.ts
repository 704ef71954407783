import type { Server } from 'node:http';
import type { Server as SecureServer } from 'node:https';
import type { Socket } from 'node:net';
import type { Clock } from '../kernel/clock.ts';
import { connectionsWithin, descriptorLimit } from '../kernel/descriptors.ts';
import type { EventBus } from '../kernel/event-bus.ts';
import type { Log } from '../kernel/log.ts';
import type { GatewayConfig } from './config.ts';
import { listenErrorOf } from './listen-error.ts';
import { createListener } from './listener.ts';
import { createSocketGuard } from './socket-guard.ts';
import { followTls } from './tls-reload.ts';
import { readTls } from './tls.ts';
import { isSocketPath } from './upgrades.ts';

export interface OpenServerDeps {
  readonly config: GatewayConfig;
  /** Base of relative paths in `gateway.tls`. */
  readonly homeDir: string;
  readonly clock: Clock;
  readonly bus: EventBus;
  readonly log: Log;
}

/** Creates the node server, with the guard of its sockets; it does not listen yet. */
export function openServer(deps: OpenServerDeps) {
  const { config, clock, log, homeDir } = deps;
  const tls = config.tls === undefined || !config.enabled ? undefined : { ...config.tls, files: readTls(config.tls, homeDir, clock.now()) };
  const limit = descriptorLimit();
  const maxConnections = connectionsWithin(config.maxConnections, limit);
  if (maxConnections < 0.9 * config.maxConnections)
    log.info({ maxConnections, descriptors: limit }, 'Fewer connections are taken than gateway.maxConnections: the limit of open files is low');
  const server = createListener({ maxConnections, isSocketPath, tls });
  const guard = createSocketGuard({ clock, tls: tls !== undefined });
  server.on('connection', (socket: Socket) => guard.track(socket));
  server.on('secureConnection', (socket: Socket) => guard.secured(socket));
  const following =
    tls === undefined || !('setSecureContext' in server)
      ? undefined
      : followTls({ ...deps, config: tls, baseDir: homeDir, files: tls.files, apply: (files) => server.setSecureContext(files) });
  return { server, guard, isSecure: tls !== undefined, stopFollowing: () => following?.[Symbol.dispose]() };
}

/** Opens the listener; fails with `ListenError`. */
export function listen(server: Server | SecureServer, { host, port }: GatewayConfig, isSecure: boolean): Promise<{ readonly address: string }> {
  return new Promise((resolve, reject) => {
    server.once('error', (error) => reject(listenErrorOf(error, host, port)));
    server.listen(port, host, () => {
      const bound = server.address();
      const boundPort = typeof bound === 'object' && bound !== null ? bound.port : port;
      resolve({ address: `${isSecure ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${boundPort}` });
    });
  });
}
