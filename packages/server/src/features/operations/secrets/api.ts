import type { Environment } from '../../../kernel/config/references.ts';

export interface SecretsApi {
  /** The environment of the daemon, with the secrets of the store for the names that it does not have. */
  readonly environment: Environment;
}
