import { createHash, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** An OAuth 2.1 authorization server on the loopback, whose user agrees to everything by default. */
export interface AuthorizationServer extends AsyncDisposable {
  readonly issuer: string;
  readonly port: number;
  /** `METHOD /path` of the requests, in order. */
  readonly requests: string[];
  /** Parameters of the token requests. */
  readonly tokenRequests: URLSearchParams[];
  /** Every secret that it ever issued: tokens, codes, client secrets. */
  readonly issued: string[];
  /** Scopes of a valid access token. */
  scopesOf(accessToken: string): readonly string[] | undefined;
  /** The user's answer: an error code instead of agreement. */
  refusal: string | undefined;
  /** Answers every request with this status instead. */
  outage: number | undefined;
  /** Whether token answers contain a refresh token. */
  issuesRefreshTokens: boolean;
  /** Issuer that the redirect names (RFC 9207). */
  claimedIssuer: string | undefined;
  /** Called before a token request is answered. */
  beforeToken: (() => Promise<void>) | undefined;
  /** Changes the published metadata. */
  metadata: Record<string, unknown>;
  /** Access tokens end; refresh tokens stay valid. */
  expireAccessTokens(): void;
  /** Everything ends. */
  revokeAll(): void;
  /** Opens an authorization address as a browser would, and returns the address to which it is sent back. */
  visit(authorizationUrl: string): Promise<string>;
}

interface Client {
  readonly secret: string | undefined;
  readonly redirectUris: readonly string[];
}

interface Code {
  readonly clientId: string;
  readonly redirectUri: string;
  readonly challenge: string;
  readonly scope: string;
  readonly resource: string | null;
}

interface Refusal {
  readonly error: string;
}

/** Starts one; `clients` are registered by hand, by id with their secret. */
export async function startAuthorizationServer(
  options: { readonly clients?: Readonly<Record<string, string | undefined>>; readonly redirectUris?: readonly string[] } = {},
): Promise<AuthorizationServer> {
  const clients = new Map<string, Client>(
    Object.entries(options.clients ?? {}).map(([id, secret]) => [id, { secret, redirectUris: options.redirectUris ?? [] }]),
  );
  const codes = new Map<string, Code>();
  const access = new Map<string, readonly string[]>();
  const refresh = new Map<string, Omit<Code, 'challenge' | 'redirectUri'>>();

  const issue = (kind: string): string => {
    const secret = `${kind}-${randomBytes(18).toString('base64url')}`;
    self.issued.push(secret);
    return secret;
  };

  function register(given: { redirect_uris?: string[]; token_endpoint_auth_method?: string }): object {
    const id = `client-${randomBytes(6).toString('hex')}`;
    const method = given.token_endpoint_auth_method ?? 'client_secret_basic';
    const secret = method === 'none' ? undefined : issue('client-secret');
    clients.set(id, { secret, redirectUris: given.redirect_uris ?? [] });
    return { ...given, client_id: id, ...(secret !== undefined && { client_secret: secret }), token_endpoint_auth_method: method };
  }

  /** The address for the browser, or an error that is shown to the user. */
  function authorize(query: URLSearchParams): string | Refusal {
    const client = clients.get(query.get('client_id') ?? '');
    const redirectUri = query.get('redirect_uri') ?? '';
    if (client === undefined || !client.redirectUris.includes(redirectUri)) return { error: 'unknown client or redirect_uri' };
    const back = new URL(redirectUri);
    back.searchParams.set('state', query.get('state') ?? '');
    back.searchParams.set('iss', self.claimedIssuer ?? self.issuer);
    const isComplete = query.get('response_type') === 'code' && query.get('code_challenge_method') === 'S256' && query.has('code_challenge');
    const error = self.refusal ?? (isComplete ? undefined : 'invalid_request');
    if (error !== undefined) back.searchParams.set('error', error);
    else {
      const code = issue('code');
      codes.set(code, {
        clientId: query.get('client_id') ?? '',
        redirectUri,
        challenge: query.get('code_challenge') ?? '',
        scope: query.get('scope') ?? '',
        resource: query.get('resource'),
      });
      back.searchParams.set('code', code);
    }
    return back.href;
  }

  function clientOf(request: IncomingMessage, body: URLSearchParams): string | undefined {
    const basic = /^Basic (.+)$/.exec(request.headers.authorization ?? '')?.[1];
    const [id = '', secret] =
      basic === undefined
        ? [body.get('client_id') ?? '', body.get('client_secret') ?? undefined]
        : Buffer.from(basic, 'base64').toString().split(':').map(decodeURIComponent);
    return clients.has(id) && clients.get(id)?.secret === secret ? id : undefined;
  }

  function grant(clientId: string, scope: string, resource: string | null): object {
    const token = issue('access');
    access.set(token, scope.split(' '));
    const next = self.issuesRefreshTokens ? issue('refresh') : undefined;
    if (next !== undefined) refresh.set(next, { clientId, scope, resource });
    return { access_token: token, token_type: 'Bearer', expires_in: 3600, scope, ...(next !== undefined && { refresh_token: next }) };
  }

  function exchange(request: IncomingMessage, body: URLSearchParams): object {
    const clientId = clientOf(request, body);
    if (clientId === undefined) return { error: 'invalid_client' };
    if (body.get('grant_type') === 'refresh_token') {
      const old = body.get('refresh_token') ?? '';
      const known = refresh.get(old);
      // Valid once.
      refresh.delete(old);
      if (known === undefined || known.clientId !== clientId || known.resource !== body.get('resource')) return { error: 'invalid_grant' };
      return grant(clientId, known.scope, known.resource);
    }
    const code = codes.get(body.get('code') ?? '');
    codes.delete(body.get('code') ?? '');
    const proof = createHash('sha256')
      .update(body.get('code_verifier') ?? '')
      .digest('base64url');
    const fits =
      code !== undefined &&
      code.clientId === clientId &&
      code.redirectUri === body.get('redirect_uri') &&
      code.challenge === proof &&
      code.resource === body.get('resource');
    return fits ? grant(clientId, code.scope, code.resource) : { error: 'invalid_grant' };
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString('utf8');
    const url = new URL(request.url ?? '/', self.issuer);
    self.requests.push(`${request.method} ${url.pathname}`);
    const json = (status: number, body: object): void => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    };
    if (self.outage !== undefined) {
      response.writeHead(self.outage).end('down');
      return;
    }
    switch (`${request.method} ${url.pathname}`) {
      case 'GET /.well-known/oauth-authorization-server':
        return json(200, self.metadata);
      case 'POST /register':
        return json(201, register(JSON.parse(text) as Parameters<typeof register>[0]));
      case 'GET /authorize': {
        const back = authorize(url.searchParams);
        if (typeof back === 'string') response.writeHead(302, { location: back }).end();
        else json(400, back);
        return;
      }
      case 'POST /token': {
        const body = new URLSearchParams(text);
        self.tokenRequests.push(body);
        await self.beforeToken?.();
        const answer = exchange(request, body);
        return json('error' in answer ? 400 : 200, answer);
      }
      case 'POST /revoke': {
        const body = new URLSearchParams(text);
        if (clientOf(request, body) === undefined) return json(401, { error: 'invalid_client' });
        if (refresh.delete(body.get('token') ?? '')) access.clear();
        return json(200, {});
      }
      default:
        return json(404, {});
    }
  }

  const server = createServer((request, response) => {
    handle(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const issuer = `http://127.0.0.1:${port}`;
  const self: AuthorizationServer = {
    issuer,
    port,
    requests: [],
    tokenRequests: [],
    issued: Object.values(options.clients ?? {}).filter((secret) => secret !== undefined),
    refusal: undefined,
    outage: undefined,
    issuesRefreshTokens: true,
    claimedIssuer: undefined,
    beforeToken: undefined,
    metadata: {
      issuer,
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}/token`,
      registration_endpoint: `${issuer}/register`,
      revocation_endpoint: `${issuer}/revoke`,
      response_types_supported: ['code'],
      code_challenge_methods_supported: ['S256'],
      token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post', 'none'],
      authorization_response_iss_parameter_supported: true,
    },
    scopesOf: (token) => access.get(token),
    expireAccessTokens: () => access.clear(),
    revokeAll() {
      access.clear();
      refresh.clear();
    },
    async visit(authorizationUrl) {
      const answer = await fetch(authorizationUrl, { redirect: 'manual' });
      const location = answer.headers.get('location');
      if (location === null) throw new Error(`the authorization server answered ${answer.status}: ${await answer.text()}`);
      return location;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return self;
}
