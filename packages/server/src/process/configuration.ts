import { hash } from 'node:crypto';
import { RootConfig } from '../config-schema.ts';
import { changedKeys, overlapping, withKept } from '../kernel/config/changed-keys.ts';
import { ConfigError, dotted, type Path } from '../kernel/config/config-error.ts';
import type { Applied, Configuration, SecretLookup } from '../kernel/config/configuration.ts';
import { createLive, type Live, type LiveSource } from '../kernel/config/live.ts';
import { type LoadedConfig, maxConfigBytes } from '../kernel/config/load.ts';
import type { Environment } from '../kernel/config/references.ts';
import { isLive } from '../kernel/config/schema-walk.ts';
import type { ConfigFile } from '../kernel/home.ts';
import type { Log } from '../kernel/log.ts';
import { readOwnFile, replaceOwnFile } from '../kernel/private-file.ts';
import type { Seal } from '../kernel/seal.ts';
import type { Redactor } from '../kernel/redact.ts';
import { checkConsistency, loadRootConfig, type StartFlags } from './load-root-config.ts';

export interface FileConfigurationOptions {
  /** Path of config.yaml. */
  readonly file: string;
  /** Sealed copy of the last text with which a server started, or all of which was put in force; none is kept when absent. */
  readonly lastGood?: { readonly file: string; readonly seal: Seal };
  readonly read: () => ConfigFile;
  readonly env: Environment;
  readonly flags: StartFlags;
  readonly redactor: Pick<Redactor, 'add'>;
  readonly log: Log;
}

type Verify = (loaded: LoadedConfig<RootConfig>) => Promise<void>;

/** The configuration of this process, through the restarts of its server. */
export class FileConfiguration implements Configuration<RootConfig> {
  readonly #options: FileConfigurationOptions;
  /** Reloads, one after the other. */
  #work: Promise<unknown> = Promise.resolve();
  /** Changes, one after the other; most of them reload. */
  #changes: Promise<unknown> = Promise.resolve();
  #lookup: SecretLookup | undefined;
  #live: LiveSource<RootConfig> | undefined;
  #restartNeeded: readonly string[] = [];
  /** Digest of the text that was read last, and what it says. */
  #seen = '';
  #file: RootConfig | undefined;
  #hadText = false;
  #fault: string | undefined;

  constructor(options: FileConfigurationOptions) {
    this.#options = options;
  }

  get file(): string {
    return this.#options.file;
  }

  get current(): RootConfig {
    return this.#inForce().current;
  }

  get live(): Live<RootConfig> {
    return this.#inForce();
  }

  get restartNeeded(): readonly string[] {
    return this.#restartNeeded;
  }

  get fault(): string | undefined {
    return this.#fault;
  }

  isStale(): boolean {
    try {
      return digestOf(this.readText()) !== this.#seen;
    } catch {
      return true;
    }
  }

  readText(): string {
    return this.#options.read().text;
  }

  check(text: string): LoadedConfig<RootConfig> {
    const { env, flags, file } = this.#options;
    const loaded = this.#parse(text);
    // The next start may have no option that hides a bad value of the file.
    if (flags.port !== undefined || flags.host !== undefined || env['GATEHOUSE_PORT'])
      loadRootConfig({ path: file, text }, { ...env, GATEHOUSE_PORT: undefined }, {}, this.#lookup);
    return loaded;
  }

  /** Reads and validates the file, and closes it to other users when it holds secrets; `notes` say so. */
  load(): { readonly loaded: LoadedConfig<RootConfig>; readonly notes: readonly string[] } {
    try {
      const file = this.#options.read();
      this.#seen = digestOf(file.text);
      const loaded = this.#parse(file.text);
      this.#options.redactor.add(loaded.secrets);
      const closed = loaded.literalSecrets ? file.protect() : undefined;
      this.#file = loaded.config;
      this.#hadText = !isBlank(file.text);
      this.#fault = undefined;
      return { loaded, notes: closed === undefined ? [] : [closed] };
    } catch (error) {
      this.noteFault(error);
      throw error;
    }
  }

  /** Returns a configuration with the secrets as they are now. */
  again({ text }: LoadedConfig<RootConfig>): LoadedConfig<RootConfig> {
    const loaded = this.#parse(text);
    this.#options.redactor.add(loaded.secrets);
    if (digestOf(text) === this.#seen) this.#file = loaded.config;
    return loaded;
  }

  /** Returns the last configuration that could be used, because the file cannot, for the reason `fault`; undefined when there is none. */
  loadLastGood(fault: Error): LoadedConfig<RootConfig> | undefined {
    const { redactor, log } = this.#options;
    const text = this.#lastGood();
    if (text === undefined) return undefined;
    try {
      const loaded = this.#parse(text);
      redactor.add(loaded.secrets);
      log.error({ err: fault }, 'config.yaml cannot be used: starting with the last configuration that could');
      return loaded;
    } catch (error) {
      log.warn({ err: error }, 'The last configuration that could be used cannot be used either');
      return undefined;
    }
  }

  /** Records why the file cannot be used, while an earlier configuration is in force. */
  noteFault(fault: unknown): void {
    this.#fault = fault instanceof Error ? fault.message : String(fault);
  }

  /** Keeps the text of a configuration with which a server has started. */
  keepGood({ text }: LoadedConfig<RootConfig>): void {
    const { lastGood, log } = this.#options;
    if (lastGood === undefined) return;
    try {
      if (this.#lastGood() !== text) replaceOwnFile(lastGood.file, lastGood.seal.close('last good', text));
    } catch (error) {
      log.warn({ err: error }, 'Failed to keep a copy of the configuration');
    }
  }

  /** Puts all of a configuration in force: that of a server that is about to start. Those who watched the earlier one are not called. */
  begin({ config }: LoadedConfig<RootConfig>): void {
    this.#live = createLive(config, (error) => this.#options.log.error({ err: error }, 'Failed to apply a changed configuration'));
    // Nothing, unless the file could not be started with and this is an earlier one.
    this.#restartNeeded = changedKeys(RootConfig, config, this.#file ?? config).map(dotted);
  }

  reload(cause: string, verify?: Verify): Promise<Applied> {
    const reloading = this.#work.then(() => this.#reload(cause, verify));
    this.#work = reloading.catch(() => undefined);
    return reloading;
  }

  inTurn<T>(change: () => Promise<T>): Promise<T> {
    const next = this.#changes.then(change);
    this.#changes = next.catch(() => undefined);
    return next;
  }

  useSecrets(lookup: SecretLookup): void {
    this.#lookup = lookup;
  }

  /** Undefined also for a copy that was sealed with another install key. */
  #lastGood(): string | undefined {
    const { lastGood } = this.#options;
    const sealed = lastGood && readOwnFile(lastGood.file, { maxBytes: 2 * maxConfigBytes });
    return sealed && lastGood.seal.open('last good', sealed.text);
  }

  #parse(text: string): LoadedConfig<RootConfig> {
    const { env, flags, file } = this.#options;
    // As a file is for a moment while an editor writes it in place: all tokens would end.
    if (this.#hadText && isBlank(text)) throw new ConfigError([{ source: file, message: 'the file is empty; write {} for the defaults' }]);
    return loadRootConfig({ path: file, text }, env, flags, this.#lookup);
  }

  async #reload(cause: string, verify?: Verify): Promise<Applied> {
    const { log } = this.#options;
    const live = this.#inForce();
    const before = live.current;
    const filed = this.#file ?? before;
    const { loaded, notes } = this.load();
    for (const note of notes) log.warn({}, note);
    await verify?.(loaded).catch((error: unknown) => {
      this.#file = filed;
      this.noteFault(error);
      throw error;
    });
    const restart = this.#needRestart(before, loaded, changedKeys(RootConfig, before, loaded.config));
    await live.set(withKept(loaded.config, before, restart));
    this.#restartNeeded = restart.map(dotted);
    if (restart.length === 0) this.keepGood(loaded);
    const changed = changedKeys(RootConfig, filed, loaded.config);
    const waiting = overlapping(changed, restart);
    const applied = { changed: changed.map(dotted), restart: waiting.map(dotted) };
    if (applied.changed.length > 0) log.info({ cause, ...applied }, 'The configuration was applied');
    return applied;
  }

  /** All changes wait when the live ones alone would not pass: a token that is removed because the listener becomes local. */
  #needRestart(before: RootConfig, loaded: LoadedConfig<RootConfig>, paths: readonly Path[]): readonly Path[] {
    const restart = paths.filter((path) => !isLive(RootConfig, path));
    if (restart.length === 0 || restart.length === paths.length) return restart;
    try {
      checkConsistency({ ...loaded, config: withKept(loaded.config, before, restart) }, this.file);
      return restart;
    } catch (error) {
      this.#options.log.warn({ err: error }, 'The changes of the configuration take effect together, after a restart');
      return paths;
    }
  }

  #inForce(): LiveSource<RootConfig> {
    if (this.#live === undefined) throw new Error('the configuration is used before it is in force');
    return this.#live;
  }
}

const isBlank = (text: string) => text.trim() === '';

function digestOf(text: string): string {
  return hash('sha256', text);
}
