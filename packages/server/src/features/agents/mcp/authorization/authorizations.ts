import { createHash, randomBytes } from 'node:crypto';
import { allows, type ResultInput } from '@gatehouse/contract';
import type * as McpClient from '@modelcontextprotocol/client';
import { AppError } from '../../../../kernel/app-error.ts';
import { announceAudit, auditRow, recordAudit } from '../../../../kernel/audit.ts';
import type { CallContext, IdentityOf } from '../../../../kernel/call-context.ts';
import type { DialRules } from '../../../../kernel/checked-dial.ts';
import type { McpServerConfig } from '../config.ts';
import { cleanLabel } from '../tools/clean-text.ts';
import type { FinishedAuthorization } from '../api.ts';
import { type FlowRow, listAuthorizations, openFlow, takeFlow } from './authorization-store.ts';
import type { Access } from './authorized-fetch.ts';
import { beginFlow, configuredClient } from './begin-flow.ts';
import { explainFailure, explainRefusal, failed, succeeded, unknownState } from './finished.ts';
import { Flow, flowName, Grant, grantName, openSealed, scopesOf, secretsOf } from './grant.ts';
import { Grants, type GrantsDeps, type Refreshed } from './grants.ts';
import { AuthorizationNeeded, type Challenge, nextStepOf, ScopeNeeded } from './needed.ts';
import { createOAuthFetch } from './oauth-fetch.ts';
import { revokeGrant } from './revoke.ts';

export interface AuthorizationsDeps extends Omit<GrantsDeps, 'fetchFor'> {
  readonly dial: Pick<DialRules, 'resolve' | 'allowAddresses'> | undefined;
  /** Address to which browsers return; fails with `precondition_failed` when the gateway has none. */
  readonly redirectUri: () => string;
  readonly identityOf: IdentityOf;
  /** Returns the server of this name as it is now. */
  readonly serverOf: (name: string) => Refreshed | undefined;
  /** Called when a server was authorized, to connect it. */
  readonly onAuthorized: (name: string) => void;
}

type View = NonNullable<ResultInput<'mcp.status'>['authorization']>;

/** What is known of a server beyond its authorization; forgotten at a restart, after which the server says it again. */
interface Notes {
  readonly url: string | undefined;
  challenge?: Challenge;
  /** Scopes that it asked for in addition. */
  missing?: string | undefined;
  /** It refuses a valid token. */
  isRefused?: boolean;
  failure?: string | undefined;
}

const flowMs = 600_000;
const maxFlows = 5;

/** Authorizations (OAuth 2.1) at MCP servers: begun by a call, completed by a person in a browser, used by the connections. */
export class Authorizations implements Disposable {
  readonly #deps: AuthorizationsDeps;
  readonly #grants: Grants;
  readonly #notes = new Map<string, Notes>();
  /** When the flows of each server began. */
  readonly #flows = new Map<string, Map<string, number>>();
  readonly #over = new AbortController();

  constructor(deps: AuthorizationsDeps) {
    this.#deps = deps;
    this.#grants = new Grants({ ...deps, fetchFor: (config, isFromFile) => this.#fetchFor(config, isFromFile) });
  }

  async load(): Promise<void> {
    const { authorizations, flows } = await this.#deps.db.read(listAuthorizations, {});
    for (const row of authorizations) {
      const grant = openSealed(this.#deps.seal, Grant, grantName(row.server), row.sealed);
      if (grant !== undefined) this.#grants.put({ row, grant });
      else this.#deps.log.error({ server: row.server }, 'The authorization of an MCP server cannot be read; authorize it again');
    }
    for (const { server, stateDigest, createdAtMs } of flows) this.#flowsOf(server).set(stateDigest, createdAtMs);
  }

  [Symbol.dispose](): void {
    this.#over.abort();
  }

  /** Returns how the requests to a server are authorized; undefined when its configuration decides it. */
  access(server: Refreshed): Access | undefined {
    const { name, config } = server;
    if (config.transport === 'stdio' || hasOwnAuthorization(config)) return undefined;
    return {
      token: () => this.#grants.at(name, config.url)?.grant.accessToken,
      renew: (used) => this.#grants.refresh(server, used),
      needed: (used, challenge) => this.#needed(name, config.url, used, challenge),
      scopeNeeded: (challenge) => this.#scopeNeeded(name, config.url, challenge),
    };
  }

  /** Notes that requests are accepted. */
  accepted(name: string): void {
    const notes = this.#notes.get(name);
    if (notes !== undefined) notes.isRefused = false;
  }

  view({ name, config }: Pick<Refreshed, 'name' | 'config'>): View | undefined {
    const notes = this.#notesOf(name, config.url);
    const held = this.#grants.at(name, config.url);
    const isValid = held !== undefined && notes.isRefused !== true;
    const isPending = this.#isPending(name);
    if (!isValid && !isPending && notes.challenge === undefined) return undefined;
    const missing = scopesOf(notes.missing);
    return {
      state: isValid ? 'authorized' : isPending ? 'pending' : 'needed',
      ...(held !== undefined && { authorizedAt: held.row.authorizedAtMs, scopes: scopesOf(held.grant.scope) }),
      ...(missing.length > 0 && { missingScopes: missing }),
      ...(notes.failure !== undefined && { failure: notes.failure }),
      ...((!isValid || missing.length > 0) && { nextStep: nextStepOf(name) }),
    };
  }

  /** Whether it is known how a server asks for authorization. */
  isChallenged(name: string, url: string | undefined): boolean {
    return this.#notesOf(name, url).challenge !== undefined || this.#grants.at(name, url) !== undefined;
  }

  async begin(call: CallContext, { name, config, isFromFile }: Refreshed): Promise<ResultInput<'mcp.authorize'>> {
    const { db, bus, clock, seal, redactor } = this.#deps;
    const url = authorizableUrl(name, config);
    const redirectUri = this.#deps.redirectUri();
    const notes = this.#notesOf(name, config.url);
    const state = randomBytes(32).toString('base64url');
    const sdk = await import('@modelcontextprotocol/client');
    const { flow, authorizationUrl } = await beginFlow(sdk, {
      url,
      oauth: config.oauth,
      challenge: { ...notes.challenge, scope: sdk.computeScopeUnion(notes.challenge?.scope, notes.missing) },
      grant: this.#grants.at(name, config.url)?.grant,
      redirectUri,
      state,
      fetchFn: this.#fetchFor(config, isFromFile, call.signal),
    }).catch((error: unknown) => {
      throw this.#failure(`The authorization of the MCP server "${name}" could not be begun`, error);
    });
    redactor.replace(flowName(name), secretsOf(flow));
    const stateDigest = digestOf(state);
    const createdAtMs = clock.now();
    const { principalId, tokenId } = call.identity;
    const audit = auditRow(call, createdAtMs, { actionType: 'mcp.authorize.begin', classification: 'mutate', target: name });
    await db.write(openFlow, {
      row: { stateDigest, server: name, sealed: seal.close(flowName(stateDigest), JSON.stringify(flow)), principalId, tokenId, createdAtMs },
      alive: { fromMs: createdAtMs - flowMs, toMs: createdAtMs + flowMs },
      maxPerServer: maxFlows,
      audit,
    });
    announceAudit(bus, audit);
    this.#noteFlow(name, stateDigest, createdAtMs);
    notes.failure = undefined;
    return { name, authorizationUrl: authorizationUrl.href, redirectUri, scopes: scopesOf(flow.scope), expiresAt: createdAtMs + flowMs };
  }

  /** Completes what a browser brings back; its state alone says for whom. */
  async finish(query: URLSearchParams, about: Pick<CallContext, 'traceId' | 'requestId' | 'signal'>): Promise<FinishedAuthorization> {
    const { db, clock, identityOf } = this.#deps;
    const state = query.get('state') ?? '';
    const row = /^[\w-]{43}$/.test(state) ? await db.write(takeFlow, { stateDigest: digestOf(state) }) : undefined;
    if (row === undefined) return unknownState;
    const { server: name } = row;
    this.#flowsOf(name).delete(row.stateDigest);
    // Also one of the future: the clock was corrected since.
    if (Math.abs(clock.now() - row.createdAtMs) > flowMs) return unknownState;
    const identity = identityOf(row.tokenId, row.principalId);
    if (identity === undefined || !allows(identity.scopes, 'admin') || identity.agents !== undefined)
      return this.#failed(name, 'the token that began it is no longer valid');
    const call: CallContext = { ...about, identity, transport: 'http' };
    try {
      const finished = await this.#redeem(call, row, query);
      if (finished.isAuthorized) return finished;
      await this.#auditFailure(call, name);
      return finished;
    } catch (error) {
      await this.#auditFailure(call, name);
      return this.#failed(name, await explainFailure(error), 502, error);
    }
  }

  /** Deletes an authorization and revokes it where that is possible; undefined when there is none. */
  async drop(call: CallContext, name: string): Promise<{ readonly revoked: boolean } | undefined> {
    const held = this.#grants.get(name);
    if (held === undefined && !this.#isPending(name)) return undefined;
    await this.#grants.delete(call, name);
    this.#flows.delete(name);
    this.#notes.delete(name);
    if (held === undefined) return { revoked: false };
    const { grant } = held;
    const server = this.#deps.serverOf(name);
    try {
      // Another server of the name has another client, which this authorization server must not learn.
      const client = grant.client ?? (server?.config.url === grant.url ? configuredClient(server.config.oauth) : undefined);
      if (client === undefined) return { revoked: false };
      const fetchFn = this.#fetchFor(server?.config, server?.isFromFile === true);
      return { revoked: await revokeGrant(grant, client, fetchFn) };
    } catch (error) {
      this.#deps.log.warn({ server: name, error }, 'Failed to revoke the authorization of an MCP server; its tokens end on their own');
      return { revoked: false };
    }
  }

  async #redeem(call: CallContext, row: FlowRow, query: URLSearchParams): Promise<FinishedAuthorization> {
    const { seal, redactor, serverOf, onAuthorized } = this.#deps;
    const { server: name } = row;
    const flow = openSealed(seal, Flow, flowName(row.stateDigest), row.sealed);
    if (flow === undefined) return this.#failed(name, 'it cannot be read with the key of this installation');
    const server = serverOf(name);
    if (server === undefined || server.config.url !== flow.url || hasOwnAuthorization(server.config))
      return this.#failed(name, 'the server was removed or changed meanwhile');
    const code = query.get('code');
    if (code === null) return this.#failed(name, explainRefusal(query.get('error')));
    redactor.replace(flowName(name), [...secretsOf(flow), code]);
    const { exchangeAuthorization } = await import('@modelcontextprotocol/client');
    const iss = query.get('iss');
    const tokens = await exchangeAuthorization(flow.metadata.issuer, {
      metadata: flow.metadata,
      clientInformation: flow.client ?? configuredClient(server.config.oauth),
      authorizationCode: code,
      codeVerifier: flow.codeVerifier,
      redirectUri: flow.redirectUri,
      fetchFn: this.#fetchFor(server.config, server.isFromFile),
      ...(iss !== null && { iss }),
      ...(flow.resource !== undefined && { resource: flow.resource }),
    });
    const scope = tokens.scope ?? flow.scope;
    const { codeVerifier: _used, ...common } = flow;
    await this.#grants.save(call, name, {
      ...common,
      accessToken: tokens.access_token,
      ...(tokens.refresh_token !== undefined && { refreshToken: tokens.refresh_token }),
      ...(scope !== undefined && { scope }),
    });
    this.#notes.delete(name);
    onAuthorized(name);
    return succeeded(name);
  }

  async #needed(name: string, url: string | undefined, used: string | undefined, challenge: Challenge | undefined): Promise<AuthorizationNeeded> {
    const notes = this.#notesOf(name, url);
    notes.challenge = { ...notes.challenge, ...challenge };
    const held = this.#grants.at(name, url);
    // A new token was refused, too: the authorization stays, in case the server recovers.
    if (held !== undefined && held.grant.accessToken === used && notes.isRefused !== true) {
      notes.isRefused = true;
      await this.#alert(name, `mcp:refused:${name}:${held.row.version}`, `The MCP server "${name}" refuses its authorization; ${nextStepOf(name)}.`);
    }
    return new AuthorizationNeeded(name, challenge !== undefined || used !== undefined);
  }

  async #scopeNeeded(name: string, url: string | undefined, challenge: Challenge): Promise<ScopeNeeded> {
    const notes = this.#notesOf(name, url);
    const held = this.#grants.at(name, url);
    const before = new Set([...scopesOf(held?.grant.scope), ...scopesOf(notes.missing)]);
    const wanted = scopesOf(challenge.scope);
    const added = wanted.filter((scope) => !before.has(scope));
    notes.challenge = { ...challenge, ...notes.challenge };
    notes.missing = [...scopesOf(notes.missing), ...added].slice(0, 64).join(' ');
    if (held !== undefined && added.length > 0)
      await this.#alert(
        name,
        `mcp:scope:${name}:${held.row.authorizedAtMs}:${digestOf(wanted.toSorted().join(' '))}`,
        `The MCP server "${name}" asks for more than it was authorized for (${cleanLabel(added.join(', '), 500)}); to allow it, ${nextStepOf(name)}.`,
      );
    return new ScopeNeeded(name, wanted.map((scope) => cleanLabel(scope, 100)).slice(0, 8));
  }

  async #alert(name: string, key: string, text: string): Promise<void> {
    await this.#grants.alert(name, key, text).catch((error: unknown) => {
      this.#deps.log.error({ server: name, err: error }, 'Failed to deliver an alert about an MCP server');
    });
  }

  #failed(name: string, why: string, status: 400 | 502 = 400, error?: unknown): FinishedAuthorization {
    const server = this.#deps.serverOf(name);
    if (server !== undefined) this.#notesOf(name, server.config.url).failure = why;
    this.#deps.log.warn({ server: name, ...(error !== undefined && { error }) }, `The authorization of an MCP server failed: ${why}`);
    return failed(name, why, status);
  }

  async #auditFailure(call: CallContext, name: string): Promise<void> {
    await recordAudit(this.#deps, call, { actionType: 'mcp.authorize', classification: 'mutate', outcome: 'failure', target: name });
  }

  /** Text of an authorization server is cleaned and redacted; it goes to administrators. */
  #failure(what: string, error: unknown): AppError {
    const text = error instanceof Error ? cleanLabel(this.#deps.redactor.redact(error.message), 500) : 'no usable answer';
    const code = error instanceof AppError && error.code !== 'internal' ? error.code : 'unavailable';
    return new AppError(code, `${what}: ${text}`, { cause: error });
  }

  #notesOf(name: string, url: string | undefined): Notes {
    let notes = this.#notes.get(name);
    if (notes === undefined || notes.url !== url) this.#notes.set(name, (notes = { url }));
    return notes;
  }

  #flowsOf(name: string): Map<string, number> {
    let flows = this.#flows.get(name);
    if (flows === undefined) this.#flows.set(name, (flows = new Map()));
    return flows;
  }

  #noteFlow(name: string, stateDigest: string, atMs: number): void {
    const flows = this.#flowsOf(name);
    flows.set(stateDigest, atMs);
    for (const [oldest] of flows) if (flows.size > maxFlows) flows.delete(oldest);
  }

  #isPending(name: string): boolean {
    const now = this.#deps.clock.now();
    return [...(this.#flows.get(name)?.values() ?? [])].some((atMs) => Math.abs(now - atMs) <= flowMs);
  }

  #fetchFor(config: McpServerConfig | undefined, isFromFile: boolean, signal?: AbortSignal): McpClient.FetchLike {
    const { clock, dial } = this.#deps;
    return createOAuthFetch({
      clock,
      dial,
      allowPrivate: config?.oauth.allowPrivate === true,
      anyPort: isFromFile,
      signal: signal === undefined ? this.#over.signal : AbortSignal.any([signal, this.#over.signal]),
    });
  }
}

/** Returns the address of a server that can be authorized; fails with `precondition_failed`. */
export function authorizableUrl(name: string, config: McpServerConfig): string {
  if (config.transport === 'stdio' || config.url === undefined)
    throw new AppError('precondition_failed', `The MCP server "${name}" is a program: only remote servers are authorized`, { param: 'name' });
  if (hasOwnAuthorization(config))
    throw new AppError('precondition_failed', `The MCP server "${name}" has an Authorization header, which is used instead: remove it first`, {
      param: 'name',
    });
  return config.url;
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function hasOwnAuthorization({ headers }: McpServerConfig): boolean {
  return Object.keys(headers).some((name) => name.toLowerCase() === 'authorization');
}
