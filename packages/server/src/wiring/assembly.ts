import type { RootConfig } from '../config-schema.ts';
import type { Environment } from '../kernel/config/references.ts';
import type { Live } from '../kernel/config/live.ts';
import type { NodesApi } from '../features/operations/nodes/api.ts';
import type { Core } from '../kernel/core.ts';
import type { ServerOptions } from '../server-handle.ts';

/** A server that is being built: what each wiring module starts from. */
export interface Assembly extends Omit<Core, 'log'> {
  /** Owns everything that is built. What is built first is disposed last. */
  readonly building: AsyncDisposableStack;
  readonly options: ServerOptions;
  /** The environment of the daemon, with stored secrets for names of secrets that it does not have. */
  readonly environment: Environment;
  /** Id of this run of the daemon, which names what it owns. */
  readonly bootId: string;
  /** Registers what recovers the work of daemons that die while this one runs, in the order of registration. */
  readonly onClaimed: NodesApi['onClaimed'];
  /** Returns a part of the configuration that can change while the server runs. */
  readonly live: <Part>(partOf: (config: RootConfig) => Part) => Live<Part>;
  /** Returns the core of a feature, with the log of its module. */
  readonly core: (module: string) => Core;
}
