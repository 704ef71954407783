import { AppError } from '../../../../kernel/app-error.ts';

/** What a refusal of a server says about its authorization (RFC 6750, RFC 9728). */
export interface Challenge {
  readonly resourceMetadataUrl?: URL | undefined;
  readonly scope?: string | undefined;
}

/** Returns what a person does next. Not after a colon: the redactor takes "authorization: …" for a header. */
export function nextStepOf(server: string): string {
  return `run \`gatehouse mcp authorize ${server}\`, or use the button Authorize in the dashboard`;
}

/** A request was refused for lack of authorization before anything was done. */
export class NotAuthorized extends AppError {}

/** A server accepts no request until a person has authorized it. */
export class AuthorizationNeeded extends NotAuthorized {
  /** Whether the server said that it is authorized by OAuth. */
  readonly isChallenged: boolean;

  constructor(server: string, isChallenged: boolean) {
    super(
      'unavailable',
      isChallenged
        ? `The MCP server "${server}" needs authorization; ${nextStepOf(server)}`
        : `The MCP server "${server}" answers 401: set its Authorization header, or, if it is authorized by OAuth, ${nextStepOf(server)}`,
    );
    this.isChallenged = isChallenged;
  }
}

/** A server wants scopes that the authorization does not contain; other requests still work. */
export class ScopeNeeded extends NotAuthorized {
  constructor(server: string, scopes: readonly string[]) {
    super(
      'unavailable',
      `The MCP server "${server}" needs a wider authorization${scopes.length === 0 ? '' : ` (${scopes.join(', ')})`}; ${nextStepOf(server)}; the call was not made`,
    );
  }
}

/** The access token has ended and could not be replaced now; later that may work. */
export class RenewalFailed extends NotAuthorized {
  constructor(server: string, reason: string, cause: unknown) {
    super('unavailable', `The authorization of the MCP server "${server}" could not be renewed (${reason}); the call was not made`, { cause });
  }
}
