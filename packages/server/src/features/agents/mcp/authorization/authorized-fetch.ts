import type { AuthorizationNeeded, Challenge, ScopeNeeded } from './needed.ts';

type Fetch = (target: string | URL, init?: RequestInit) => Promise<Response>;

/** The authorization at one server, as its requests use it. */
export interface Access {
  token(): string | undefined;
  /** Called after a 401 for `used`. Returns whether another token may be tried; requests that fail together share one refresh. */
  renew(used: string | undefined): Promise<boolean>;
  /** Notes that the server refuses every request, and returns the error for it. */
  needed(used: string | undefined, challenge: Challenge | undefined): Promise<AuthorizationNeeded>;
  /** Notes that the server wants more scopes, and returns the error for it. */
  scopeNeeded(challenge: Challenge): Promise<ScopeNeeded>;
}

/** Reads `WWW-Authenticate`; undefined without a challenge for OAuth. */
export type ReadChallenge = (answer: Response) => (Challenge & { readonly error?: string | undefined }) | undefined;

/** Adds the token to requests, and repeats a request that was refused once with a new one. */
export function authorizeFetch(inner: Fetch, access: Access, readChallenge: ReadChallenge): Fetch {
  return async (target, init) => {
    for (let attempt = 0; ; attempt += 1) {
      const used = access.token();
      const answer = await inner(target, used === undefined ? init : withToken(init, used));
      if (answer.status !== 401 && answer.status !== 403) return answer;
      const challenge = readChallenge(answer);
      if (answer.status === 403 && challenge?.error !== 'insufficient_scope') return answer;
      await answer.body?.cancel().catch(() => {});
      if (answer.status === 403) throw await access.scopeNeeded(challenge ?? {});
      if (attempt > 0 || !(await access.renew(used))) throw await access.needed(used, challenge);
    }
  };
}

function withToken(init: RequestInit | undefined, token: string): RequestInit {
  const headers = new Headers(init?.headers);
  headers.set('authorization', `Bearer ${token}`);
  return { ...init, headers };
}
