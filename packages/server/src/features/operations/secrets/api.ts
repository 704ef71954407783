import type { CallContext } from '../../../kernel/call-context.ts';
import type { Environment } from '../../../kernel/config/references.ts';

/** What the audit records of the change of a secret. */
export interface AuditedSecret {
  readonly actionType: string;
  readonly classification: 'destructive' | 'security';
  readonly target: string;
}

export interface SecretsApi {
  /** The environment of the daemon, with the secrets of the store for the names that it does not have. */
  readonly environment: Environment;
  /** Calls `run` after each change of a stored secret; the caller of the change waits until it is done. */
  onChange(run: () => Promise<void> | void): Disposable;
  /**
   * Stores a secret for a caller that may change what uses it; returns keys that need a restart for it.
   * @throws AppError when the environment has the name, the store is read-only, or the configuration is not valid
   */
  replace(name: string, value: string, call: CallContext, audited: AuditedSecret): Promise<readonly string[]>;
  /**
   * Replaces the secret that the token `tokenId` of config.yaml has by a reference; returns keys that need a restart for it, and undefined
   * when the token has no such reference.
   */
  rotateToken(tokenId: string, value: string, call: CallContext): Promise<readonly string[] | undefined>;
}
