import { AppError } from '../../../../kernel/app-error.ts';
import type { FinishedAuthorization } from '../api.ts';

/** The same for a state that was used, is too old, or never existed. */
export const unknownState: FinishedAuthorization = {
  isAuthorized: false,
  status: 400,
  title: 'This link is no longer valid',
  text: 'It was used before, is older than ten minutes, or was not made by this Gatehouse. Begin the authorization again.',
};

export function succeeded(server: string): FinishedAuthorization {
  return {
    isAuthorized: true,
    status: 200,
    title: `${server} is authorized`,
    text: 'Gatehouse is connecting the server now. You can close this window.',
  };
}

export function failed(server: string, why: string, status: 400 | 502): FinishedAuthorization {
  return { isAuthorized: false, status, title: `${server} was not authorized`, text: `The authorization failed: ${why}. You can begin it again.` };
}

const refusals: Readonly<Record<string, string>> = {
  access_denied: 'it was declined',
  invalid_request: 'the authorization server found the request malformed',
  invalid_scope: 'the authorization server does not know the scopes that were asked for',
  invalid_target: 'the authorization server does not know this MCP server',
  server_error: 'the authorization server had an error',
  temporarily_unavailable: 'the authorization server is overloaded; try again later',
  unauthorized_client: 'the authorization server does not allow this client to ask',
  unsupported_response_type: 'the authorization server does not support authorization codes',
};

/** Only known codes are repeated: anybody can write into the address of a page. */
export function explainRefusal(error: string | null): string {
  if (error === null) return 'the authorization server sent neither a code nor an error';
  return (Object.hasOwn(refusals, error) ? refusals[error] : undefined) ?? 'the authorization server refused for a reason that it does not explain';
}

/** Texts of an authorization server go to the log, not to the page: an attacker may have written them. */
export async function explainFailure(error: unknown): Promise<string> {
  const { IssuerMismatchError, OAuthError } = await import('@modelcontextprotocol/client');
  if (error instanceof IssuerMismatchError) return 'the answer did not come from the authorization server that was asked';
  if (error instanceof OAuthError)
    return error.code === 'invalid_grant' ? 'the authorization server refused the code' : `the authorization server refused (${codeOf(error.code)})`;
  if (error instanceof AppError && error.code !== 'internal') return error.message;
  return 'the authorization server gave no usable answer';
}

function codeOf(code: string): string {
  return /^[a-z_]{1,40}$/.test(code) ? code : 'unknown error';
}
