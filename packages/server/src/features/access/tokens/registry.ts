import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { TokenCompat, TokenScope } from '@gatehouse/contract';
import type { Identity } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { TokensApi } from './api.ts';
import type { PersonsConfig } from './config.ts';
import { Persons } from './persons.ts';
import { digestOf } from './secret.ts';

export type Limits = PersonsConfig[string];

export interface TokenRecord {
  readonly id: string;
  readonly digest: string;
  readonly source: 'config' | 'generated' | 'created';
  readonly scopes: readonly TokenScope[];
  readonly agents?: readonly string[] | undefined;
  readonly compat?: TokenCompat | undefined;
  readonly person?: string | undefined;
  readonly budgets?: Limits['budgets'];
  readonly rateLimit?: Limits['rateLimit'];
  readonly createdAtMs?: number | undefined;
  readonly expiresAtMs?: number | undefined;
}

/** How soon an expiry is noticed that no timer waited for: the machine slept, or its clock was set. */
const checkMs = 60_000;

interface Entry {
  readonly record: TokenRecord;
  readonly identity: Identity;
  readonly digestBytes: Buffer;
  /** Whether its holders know that it has expired. */
  isOver: boolean;
}

/** Every token in force, by digest and by id: an entry grants access as soon as it is added. */
export class TokenRegistry implements TokensApi {
  /** Digests of secrets of files that were revoked or rotated. */
  readonly revoked = new Set<string>();
  readonly persons = new Persons();
  readonly #pepper: Buffer;
  readonly #clock: Clock;
  readonly #byDigest = new Map<string, Entry>();
  readonly #byId = new Map<string, Entry>();
  readonly #listeners = new Set<Parameters<TokensApi['onRevoked']>[0]>();
  /** Entries by a cheaper digest that means nothing outside this process; each with the secret that matched. */
  readonly #bySeen = new Map<string, Entry>();
  readonly #salt = randomBytes(32).toString('hex');
  readonly #used = new Map<string, number>();
  /** Uses since the last `takeUses`. */
  #dirty = new Set<string>();
  #cancelExpiry: (() => void) | undefined;

  constructor(pepper: Buffer, clock: Clock) {
    this.#pepper = pepper;
    this.#clock = clock;
  }

  authenticate(secret: string): Identity | undefined {
    // Both maps use a digest that no outsider can predict: lookup time reveals nothing about the secret.
    const seen = hash('sha256', `${this.#salt}${secret}`, 'base64url');
    const entry = this.#bySeen.get(seen) ?? this.#open(seen, secret);
    if (entry === undefined || this.#expired(entry)) return undefined;
    const { id } = entry.record;
    this.#used.set(id, this.#clock.now());
    this.#dirty.add(id);
    return entry.identity;
  }

  #open(seen: string, secret: string): Entry | undefined {
    const digest = digestOf(this.#pepper, secret);
    const entry = this.#byDigest.get(digest);
    if (entry === undefined || !timingSafeEqual(entry.digestBytes, Buffer.from(digest))) return undefined;
    this.#bySeen.set(seen, entry);
    return entry;
  }

  /** A replaced or removed entry grants no access. */
  #forget(entry: Entry): void {
    this.#byDigest.delete(entry.record.digest);
    for (const [seen, other] of this.#bySeen) if (other === entry) this.#bySeen.delete(seen);
  }

  current(tokenId: string): Identity | undefined {
    const entry = this.#byId.get(tokenId);
    return entry === undefined || this.#expired(entry) ? undefined : entry.identity;
  }

  onRevoked(listener: Parameters<TokensApi['onRevoked']>[0]): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  find(id: string): TokenRecord | undefined {
    return this.#byId.get(id)?.record;
  }

  /** Tokens that currently grant access, by id. */
  list(): TokenRecord[] {
    return [...this.#byId.values()]
      .filter((entry) => !this.#expired(entry))
      .map((entry) => entry.record)
      .toSorted((a, b) => (a.id < b.id ? -1 : 1));
  }

  lastUsed(id: string): number | undefined {
    return this.#used.get(id);
  }

  setLastUsed(id: string, atMs: number): void {
    this.#used.set(id, atMs);
  }

  /** Returns uses since the previous call. */
  takeUses(): { readonly tokenId: string; readonly atMs: number }[] {
    const uses = [...this.#dirty].flatMap((tokenId) => {
      const atMs = this.#used.get(tokenId);
      return atMs === undefined ? [] : [{ tokenId, atMs }];
    });
    this.#dirty = new Set();
    return uses;
  }

  /** Adds a token, or replaces the one of the same id and notifies its holders. */
  put(record: TokenRecord): void {
    const old = this.#byId.get(record.id);
    if (old !== undefined) this.#forget(old);
    const twin = this.#byDigest.get(record.digest);
    if (twin !== undefined) this.#forget(twin);
    const identity: Identity = {
      principalId: this.persons.principalOf(record),
      tokenId: record.id,
      ...(record.person !== undefined && { person: record.person }),
      scopes: record.scopes,
      ...(record.agents !== undefined && { agents: record.agents }),
      ...(record.expiresAtMs !== undefined && { expiresAt: record.expiresAtMs }),
      ...(record.compat !== undefined && { compat: record.compat }),
    };
    const entry: Entry = { record, identity: Object.freeze(identity), digestBytes: Buffer.from(record.digest), isOver: false };
    entry.isOver = this.#expired(entry);
    this.#byDigest.set(record.digest, entry);
    this.#byId.set(record.id, entry);
    if (old !== undefined) this.#notify(old);
    this.#watchExpiry();
  }

  remove(id: string): void {
    const old = this.#byId.get(id);
    if (old === undefined) return;
    this.#forget(old);
    this.#byId.delete(id);
    this.#used.delete(id);
    this.#dirty.delete(id);
    this.#notify(old);
    this.#watchExpiry();
  }

  dispose(): void {
    this.#cancelExpiry?.();
  }

  #expired(entry: Entry): boolean {
    return entry.record.expiresAtMs !== undefined && entry.record.expiresAtMs <= this.#clock.now();
  }

  #notify({ identity }: Entry): void {
    for (const listener of this.#listeners) listener(identity.tokenId, identity);
  }

  /** Notifies holders of tokens that have expired, and sleeps until the next one does. One that expired counts again when the clock goes back. */
  #watchExpiry(): void {
    this.#cancelExpiry?.();
    this.#cancelExpiry = undefined;
    let sleepMs: number | undefined;
    for (const entry of this.#byId.values()) {
      const { expiresAtMs } = entry.record;
      if (expiresAtMs === undefined) continue;
      const leftMs = expiresAtMs - this.#clock.now();
      const hasExpired = leftMs <= 0 && !entry.isOver;
      entry.isOver = leftMs <= 0;
      if (hasExpired) this.#notify(entry);
      sleepMs = Math.min(sleepMs ?? checkMs, leftMs > 0 ? leftMs : checkMs);
    }
    if (sleepMs !== undefined) this.#cancelExpiry = this.#clock.after(sleepMs, () => this.#watchExpiry());
  }
}
