import type * as McpClient from '@modelcontextprotocol/client';
import { announceAudit, auditRow } from '../../../../kernel/audit.ts';
import type { CallContext } from '../../../../kernel/call-context.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { OperationCall } from '../../../../kernel/db/operation.ts';
import type { EventBus } from '../../../../kernel/event-bus.ts';
import { newId } from '../../../../kernel/ids.ts';
import type { Log } from '../../../../kernel/log.ts';
import type { Redactor } from '../../../../kernel/redact.ts';
import type { Seal } from '../../../../kernel/seal.ts';
import type { InboxApi, InboxMessage } from '../../../unattended/inbox/api.ts';
import type { McpServerConfig } from '../config.ts';
import { cleanLabel } from '../tools/clean-text.ts';
import {
  type AuthorizationRow,
  alertAboutServer,
  deleteAuthorization,
  loseAuthorization,
  renewAuthorization,
  saveAuthorization,
} from './authorization-store.ts';
import { configuredClient } from './begin-flow.ts';
import { type Grant, grantName, secretsOf } from './grant.ts';
import { nextStepOf, RenewalFailed } from './needed.ts';

export interface GrantsDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly log: Log;
  readonly redactor: Pick<Redactor, 'redact' | 'replace'>;
  readonly seal: Seal;
  readonly inbox: Pick<InboxApi, 'deliverCall' | 'announce'>;
  /** Agent whose inbox alerts belong to. */
  readonly defaultAgentId: () => string;
  readonly fetchFor: (config: McpServerConfig, isFromFile: boolean) => McpClient.FetchLike;
}

export interface Held {
  readonly row: AuthorizationRow;
  readonly grant: Grant;
}

/** The server whose authorization is refreshed. */
export interface Refreshed {
  readonly name: string;
  readonly config: McpServerConfig;
  readonly isFromFile: boolean;
}

/** The valid authorizations, by server: stored sealed, held in memory, refreshed one request at a time. */
export class Grants {
  readonly #deps: GrantsDeps;
  readonly #held = new Map<string, Held>();
  readonly #refreshing = new Map<string, Promise<boolean>>();

  constructor(deps: GrantsDeps) {
    this.#deps = deps;
  }

  put(held: Held): void {
    const { server } = held.row;
    const before = this.#held.get(server)?.grant;
    this.#held.set(server, held);
    // A token that was just replaced may still appear in an error.
    this.#deps.redactor.replace(grantName(server), [...secretsOf(before), ...secretsOf(held.grant)]);
  }

  get(server: string): Held | undefined {
    return this.#held.get(server);
  }

  /** Returns the authorization for this address. */
  at(server: string, url: string | undefined): Held | undefined {
    const held = this.#held.get(server);
    return held?.grant.url === url ? held : undefined;
  }

  async save(call: CallContext, server: string, grant: Grant): Promise<void> {
    const { db, bus, clock, seal } = this.#deps;
    const row: AuthorizationRow = {
      server,
      version: newId('mv'),
      sealed: seal.close(grantName(server), JSON.stringify(grant)),
      principalId: call.identity.principalId,
      authorizedAtMs: clock.now(),
    };
    const audit = auditRow(call, row.authorizedAtMs, { actionType: 'mcp.authorize', classification: 'mutate', target: server });
    await db.write(saveAuthorization, { row, audit });
    this.put({ row, grant });
    announceAudit(bus, audit);
  }

  async delete(call: CallContext, server: string): Promise<void> {
    const { db, bus, clock, redactor } = this.#deps;
    const audit = auditRow(call, clock.now(), { actionType: 'mcp.deauthorize', classification: 'destructive', target: server });
    await db.write(deleteAuthorization, { server, audit });
    this.#held.delete(server);
    announceAudit(bus, audit);
    // What still runs with its tokens ends with the connection.
    redactor.replace(grantName(server), []);
  }

  /** Replaces an access token that was refused; requests that fail at once share the refresh. Returns false when there is none to try. */
  refresh(server: Refreshed, used: string | undefined): Promise<boolean> {
    const held = this.at(server.name, server.config.url);
    if (held === undefined) return Promise.resolve(false);
    if (held.grant.accessToken !== used) return Promise.resolve(true);
    let running = this.#refreshing.get(server.name);
    if (running === undefined) {
      running = this.#refresh(server, held).finally(() => this.#refreshing.delete(server.name));
      this.#refreshing.set(server.name, running);
    }
    return running;
  }

  async #refresh(server: Refreshed, held: Held): Promise<boolean> {
    const { db, seal, log, redactor } = this.#deps;
    const { name } = server;
    const { refreshToken } = held.grant;
    if (refreshToken === undefined) {
      await this.#lose(held, 'its token is no longer valid, and it came without a refresh token');
      return false;
    }
    // A refresh token is often valid once: it is used only by a daemon that may store its successor.
    const claimed = { ...held.row, version: newId('mv') };
    const isClaimed = await db.write(renewAuthorization, { ...claimed, expected: held.row.version });
    if (this.#isReplaced(held)) return true;
    if (!isClaimed) this.#held.delete(name);
    if (!this.#held.has(name)) return false;
    this.#held.set(name, { row: claimed, grant: held.grant });
    const grant = await this.#requestTokens(server, { row: claimed, grant: held.grant }, refreshToken);
    if (grant === undefined) return false;
    const row = { ...claimed, version: newId('mv'), sealed: seal.close(grantName(name), JSON.stringify(grant)) };
    if (this.#isReplaced(held)) return true;
    if (!this.#held.has(name)) return false;
    this.put({ row: claimed, grant });
    try {
      if (await db.write(renewAuthorization, { ...row, expected: claimed.version })) this.put({ row, grant });
      else this.#held.delete(name);
    } catch (error) {
      // Used from memory until it can be stored: the old one is no longer valid.
      log.error({ server: name, err: error }, 'Failed to store the refreshed authorization of an MCP server; it is lost at a restart');
    }
    redactor.replace(grantName(name), [...secretsOf(held.grant), ...secretsOf(grant)]);
    return this.#held.has(name);
  }

  async #requestTokens({ name, config, isFromFile }: Refreshed, held: Held, refreshToken: string): Promise<Grant | undefined> {
    const { redactor, fetchFor } = this.#deps;
    const { grant } = held;
    const { refreshAuthorization, OAuthError } = await import('@modelcontextprotocol/client');
    try {
      const tokens = await refreshAuthorization(grant.metadata.issuer, {
        metadata: grant.metadata,
        clientInformation: grant.client ?? configuredClient(config.oauth),
        refreshToken,
        fetchFn: fetchFor(config, isFromFile),
        ...(grant.resource !== undefined && { resource: grant.resource }),
      });
      const scope = tokens.scope ?? grant.scope;
      return {
        ...grant,
        accessToken: tokens.access_token,
        ...(tokens.refresh_token !== undefined && { refreshToken: tokens.refresh_token }),
        ...(scope !== undefined && { scope }),
      };
    } catch (error) {
      if (error instanceof OAuthError && isFinal(error.code)) {
        await this.#lose(held, `the authorization server refused to renew it (${error.code})`);
        return undefined;
      }
      const reason = error instanceof Error ? cleanLabel(redactor.redact(error.message), 300) : 'no usable answer';
      throw new RenewalFailed(name, reason, error);
    }
  }

  #isReplaced(held: Held): boolean {
    const now = this.#held.get(held.row.server);
    return now !== undefined && now.grant !== held.grant;
  }

  async #lose({ row, grant }: Held, why: string): Promise<void> {
    const { db, log, inbox } = this.#deps;
    const { server, version } = row;
    const text = `The authorization of the MCP server "${server}" has ended: ${why}. Its tools cannot be used until you ${nextStepOf(server)}.`;
    const message = this.#alert(row, `mcp:lost:${server}:${version}`, text);
    const lost = await db.write(loseAuthorization, { server, version, alert: inbox.deliverCall(message) });
    if (this.#held.get(server)?.grant === grant) this.#held.delete(server);
    if (!lost) return;
    inbox.announce(message);
    log.warn({ server }, `The authorization of an MCP server has ended: ${why}`);
  }

  /** Alerts the owner of an authorization; a repeated `key` alerts nobody. */
  async alert(server: string, key: string, text: string): Promise<void> {
    const { db, inbox } = this.#deps;
    const held = this.#held.get(server);
    if (held === undefined) return;
    const message = this.#alert(held.row, key, text);
    const call: OperationCall = inbox.deliverCall(message);
    if ((await db.write(alertAboutServer, { call })) === 'accepted') inbox.announce(message);
  }

  #alert({ principalId }: AuthorizationRow, opKey: string, text: string): InboxMessage {
    const { clock, defaultAgentId } = this.#deps;
    return {
      id: newId('in'),
      opKey,
      digest: opKey,
      source: 'mcp',
      agentId: defaultAgentId(),
      conversationRef: null,
      principalId,
      level: 'alert',
      text,
      atMs: clock.now(),
    };
  }
}

/** Whether asking again cannot help. */
function isFinal(code: string): boolean {
  return code === 'invalid_grant' || code === 'invalid_client' || code === 'unauthorized_client';
}
