export { RootConfig } from './config-schema.ts';
export { type Clock, systemClock } from './kernel/clock.ts';
export type { EventBus } from './kernel/event-bus.ts';
export { type HomePaths, homePaths } from './kernel/home-paths.ts';
export { InstallKey } from './kernel/install-key.ts';
export { silentLog } from './kernel/log.ts';
export type { Tool } from './runtime/tool.ts';
export { createServer } from './server.ts';
export type { ServerHandle, ServerOptions } from './server-handle.ts';
