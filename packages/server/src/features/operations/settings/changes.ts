import type * as z from 'zod';
import { AppError } from '../../../kernel/app-error.ts';
import { announceAudit, auditRow } from '../../../kernel/audit.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import { changedKeys, overlapping } from '../../../kernel/config/changed-keys.ts';
import { ConfigError, dotted, type Path, readPath } from '../../../kernel/config/config-error.ts';
import type { Applied, Configuration } from '../../../kernel/config/configuration.ts';
import { documentValue, EditError } from '../../../kernel/config/edit.ts';
import type { LoadedConfig } from '../../../kernel/config/load.ts';
import { isLive } from '../../../kernel/config/schema-walk.ts';
import type { Core } from '../../../kernel/core.ts';
import type { AuditClass, ChangedConfig, VersionOrigin } from './api.ts';
import { protectedChanges, requireOwner } from './protected-keys.ts';
import { redactedLines } from './redacted-text.ts';
import { unifiedDiff } from './unified-diff.ts';
import { byHand, type ConfigVersions, digestOf, type Settled } from './versions.ts';

export interface ConfigChangesDeps<Config> extends Pick<Core, 'bus' | 'clock' | 'log'> {
  /** The schema of the whole of config.yaml. */
  readonly schema: z.ZodObject;
  readonly configuration: Configuration<Config>;
  readonly versions: ConfigVersions;
  readonly redactText: (text: string) => string;
  /** Fails with a ConfigError for what only a start finds: a model that no provider has. */
  readonly checkBuild: (loaded: LoadedConfig<Config>) => Promise<void>;
}

/** A change that is asked for. */
export interface Plan {
  /** Returns the new text. */
  readonly make: (text: string) => string | Promise<string>;
  readonly origin: VersionOrigin;
  readonly summary: string;
  readonly section?: string | undefined;
  readonly key?: string | undefined;
  readonly actionType: string;
  readonly classification?: AuditClass | undefined;
  readonly target?: string | undefined;
  readonly ifDigest?: string | undefined;
  readonly dryRun?: boolean | undefined;
  /** Absent for a caller that checks its own permissions. */
  readonly owner?: { readonly confirm: boolean; readonly isOwner: boolean } | undefined;
  /** Also replaces a file that cannot be used, which is kept as a version. */
  readonly replacesInvalid?: boolean | undefined;
}

export interface Done extends ChangedConfig {
  readonly before: string;
  readonly text: string;
  readonly diff?: string;
  /** Keys that need a confirmation; only of a dry run. */
  readonly protected?: readonly string[];
}

/** Changes of config.yaml, one after another: each is validated as a whole, stored as a version, written and put in force. */
export class ConfigChanges<Config> {
  readonly #deps: ConfigChangesDeps<Config>;

  constructor(deps: ConfigChangesDeps<Config>) {
    this.#deps = deps;
  }

  change(plan: Plan, call: CallContext): Promise<Done> {
    return this.#deps.configuration.inTurn(() => this.#change(plan, call));
  }

  /**
   * Puts config.yaml in force after an edit by hand, if it was not yet, and stores it as a version.
   * @throws ConfigError for an edit that cannot be used; what is in force stays
   */
  adopt(): Promise<void> {
    return this.#deps.configuration.inTurn(() => this.#adopt());
  }

  /** Returns a diff of two texts without their secrets. */
  diff(before: string, after: string, names?: readonly [string, string]): string {
    const { schema, redactText } = this.#deps;
    const shown = { before: redactedLines(schema, before, redactText), after: redactedLines(schema, after, redactText) };
    return unifiedDiff(before.split('\n'), after.split('\n'), shown, names);
  }

  async #change(plan: Plan, call: CallContext): Promise<Done> {
    const { configuration, versions } = this.#deps;
    const base = await this.#settle(plan);
    if (plan.ifDigest !== undefined && plan.ifDigest !== base.digest)
      throw new AppError('conflict', `The configuration was changed meanwhile: its digest is ${base.digest}`, { param: 'ifDigest' });
    const text = await this.#make(plan, base.text);
    const loaded = await this.#validated(text);
    const guarded = plan.owner === undefined ? [] : protectedChanges(valueOf(base.text), valueOf(text));
    if (plan.owner !== undefined) requireOwner(guarded, plan.owner);
    const paths = changedKeys(this.#deps.schema, this.#configOf(base.text), loaded.config);
    if (plan.dryRun === true) return { ...this.#preview(base, text, paths), protected: guarded };
    if (text === base.text) return { before: text, text, version: base.number, digest: base.digest, changed: [], restart: [] };
    const atMs = this.#deps.clock.now();
    const { actionType, classification = 'destructive', target = [plan.section, plan.key].filter((part) => part !== undefined).join('.') } = plan;
    const audited = (outcome: 'success' | 'failure') =>
      auditRow(call, atMs, { actionType, classification, outcome, ...(target !== '' && { target }) });
    const row = audited('success');
    const note = {
      principalId: call.identity.principalId,
      origin: plan.origin,
      summary: plan.summary,
      section: plan.section ?? null,
      key: plan.key ?? null,
      traceId: call.traceId,
    };
    const settled = await versions.replace(base, text, note, { row, failed: audited('failure') });
    announceAudit(this.#deps.bus, row);
    await configuration.reload(plan.actionType);
    const changed = paths.map(dotted);
    const { restartNeeded } = configuration;
    const waiting = restartNeeded.map((key) => readPath(key) ?? [key]);
    const restart = overlapping(paths, waiting).map(dotted);
    this.#announce({ ...plan, patchedBy: call.identity.principalId }, settled, { changed, restart });
    return { before: base.text, text, version: settled.number, digest: settled.digest, changed, restart };
  }

  async #adopt(): Promise<void> {
    const { configuration, versions, checkBuild, log } = this.#deps;
    if (!configuration.isStale()) return;
    let settled: Settled | undefined;
    try {
      settled = await versions.settle();
    } catch (error) {
      // The reload below names what is wrong with the text. A history that cannot be stored stops nothing.
      if (!(error instanceof ConfigError)) log.error({ err: error }, 'Failed to store the edited config.yaml as a version');
    }
    const applied = await configuration.reload('file', checkBuild);
    if (settled !== undefined && applied.changed.length > 0) this.#announce({ origin: 'file', patchedBy: byHand.principalId }, settled, applied);
  }

  #announce(
    { origin, section, key, patchedBy }: Pick<Plan, 'origin' | 'section' | 'key'> & { readonly patchedBy: string },
    { number }: Settled,
    { changed, restart }: Applied,
  ): void {
    this.#deps.bus.emit('config:patched', {
      ...(section !== undefined && { section }),
      ...(key !== undefined && { key }),
      from: origin,
      patchedBy,
      version: number,
      changed: [...changed],
      restart: [...restart],
      timestamp: this.#deps.clock.now(),
    });
  }

  async #settle({ replacesInvalid, actionType }: Plan): Promise<Settled> {
    try {
      const settled = await this.#deps.versions.settle({ keepInvalid: replacesInvalid === true });
      if (settled.isWritten) await this.#deps.configuration.reload(actionType);
      return settled;
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      throw new AppError(
        'precondition_failed',
        `config.yaml cannot be used as it is now, so nothing can be changed in it: ${error.message}. Repair it by hand, or take an earlier version with config.rollback`,
        { cause: error },
      );
    }
  }

  async #make({ make }: Plan, text: string): Promise<string> {
    try {
      return await make(text);
    } catch (error) {
      if (!(error instanceof EditError)) throw error;
      throw new AppError('invalid_params', error.message, { param: error.path.length === 0 ? 'value' : dotted(error.path) });
    }
  }

  async #validated(text: string): Promise<LoadedConfig<Config>> {
    try {
      const loaded = this.#deps.configuration.check(text);
      await this.#deps.checkBuild(loaded);
      return loaded;
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      const issues = error.problems.map(({ key, message }) => ({ path: key ?? '', message }));
      const message = `Config validation failed: ${issues.map((issue) => (issue.path === '' ? issue.message : `${issue.path}: ${issue.message}`)).join('; ')}`;
      throw new AppError('invalid_params', message, { issues, ...(issues[0] !== undefined && issues[0].path !== '' && { param: issues[0].path }) });
    }
  }

  /** The values that a text has; those in force where it cannot be used. */
  #configOf(text: string): Config {
    const { configuration } = this.#deps;
    try {
      return configuration.check(text).config;
    } catch {
      return configuration.current;
    }
  }

  #preview(base: Settled, text: string, paths: readonly Path[]): Done {
    const { schema } = this.#deps;
    return {
      before: base.text,
      text,
      version: base.number,
      digest: digestOf(text),
      changed: paths.map(dotted),
      restart: paths.filter((path) => !isLive(schema, path)).map(dotted),
      diff: this.diff(base.text, text, ['config.yaml', 'config.yaml (changed)']),
    };
  }
}

/** Undefined where the text is not valid, so that everything counts as changed. */
function valueOf(text: string): unknown {
  try {
    return documentValue(text);
  } catch {
    return undefined;
  }
}
