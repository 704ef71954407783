import * as z from 'zod';
import { AppError } from '../../../kernel/app-error.ts';
import { announceAudit, auditRow, recordAudit } from '../../../kernel/audit.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import { dotted } from '../../../kernel/config/config-error.ts';
import { documentValue, editDocument, EditError } from '../../../kernel/config/edit.ts';
import { configJsonSchema } from '../../../kernel/config/json-schema.ts';
import { redactedConfig } from '../../../kernel/config/redacted.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import type { ConfigVersion, SettingsApi } from './api.ts';
import { ConfigChanges, type ConfigChangesDeps, type Done, type Plan } from './changes.ts';
import { findConfigVersion, listConfigVersions, readConfigState, type SealedVersion, squashConfigVersions, versionBefore } from './store.ts';
import { coerced, mergeEdits, pathOf, refuseMarkers, shownAt, writtenValue } from './values.ts';
import { digestOf } from './versions.ts';

export interface SettingsDeps<Config extends object> extends ConfigChangesDeps<Config> {
  readonly db: Db;
  readonly homeId: string;
  /** Whether a call comes from the owner of the home folder, over its socket, or from this process. */
  readonly isLocalOwner: (call: CallContext) => boolean;
}

type SettingsMethods = HandlersOf<`config.${'read' | 'get' | 'set' | 'schema' | 'patch' | 'apply' | 'history' | 'diff' | 'rollback' | 'gc'}`>;

interface Asked {
  readonly ifDigest?: string | undefined;
  readonly confirm?: boolean | undefined;
  readonly dryRun?: boolean | undefined;
}

/** The configuration as others see and change it (json-rpc.md §4, config): never a secret, except to the owner on this machine. */
export function createSettings<Config extends object>(
  deps: SettingsDeps<Config>,
): { readonly methods: SettingsMethods; readonly api: SettingsApi; readonly sections: readonly string[] } {
  const { db, bus, clock, schema, configuration, redactText, versions } = deps;
  const sections = Object.keys(schema.shape);
  const changes = new ConfigChanges(deps);

  function known(section: string): string {
    if (!sections.includes(section))
      throw new AppError('not_found', `Unknown config section: "${section}". Valid sections: ${sections.join(', ')}`, { param: 'section' });
    return section;
  }

  function redactedSection(section: string): unknown {
    const part = redactedConfig(schema, { [section]: Reflect.get(configuration.current, section) }, redactText);
    return z.record(z.string(), z.unknown()).parse(part)[section] ?? null;
  }

  function isOwner(call: CallContext): boolean {
    return deps.isLocalOwner(call) || call.identity.scopes.includes('*');
  }

  /** What all changes of a caller have in common. */
  function planOf(call: CallContext, { ifDigest, confirm, dryRun }: Asked): Pick<Plan, 'origin' | 'ifDigest' | 'dryRun' | 'owner'> {
    return { origin: deps.isLocalOwner(call) ? 'cli' : 'rpc', ifDigest, dryRun, owner: { confirm: confirm === true, isOwner: isOwner(call) } };
  }

  /** Makes several changes as one. */
  async function patchAll(params: Asked & { readonly changes: readonly { readonly path: string; readonly value: unknown }[] }, call: CallContext) {
    const edits = params.changes.map(({ path: text, value }) => {
      const path = pathOf({ path: text });
      known(String(path[0]));
      refuseMarkers(value, path);
      return { path, value: coerced(schema, path, value) };
    });
    const paths = edits.map(({ path }) => dotted(path));
    return changes.change(
      {
        ...planOf(call, params),
        make: (text) => edits.reduce((current, { path, value }) => editDocument(current, mergeEdits(current, path, value)), text),
        summary: `changed ${paths.slice(0, 5).join(', ')}${paths.length > 5 ? ` and ${paths.length - 5} more` : ''}`,
        actionType: 'config.patch',
      },
      call,
    );
  }

  async function patch(
    params: Asked & {
      readonly section?: string | undefined;
      readonly key?: string | undefined;
      readonly path?: string | undefined;
      readonly value?: unknown;
    },
    actionType: string,
    call: CallContext,
  ) {
    if (params.value === undefined) throw new AppError('invalid_params', 'value: is missing; null removes the key', { param: 'value' });
    const path = pathOf(params);
    const section = known(String(path[0]));
    const key = params.key ?? (path.length > 1 ? params.path?.slice(section.length + 1) : undefined);
    refuseMarkers(params.value, path);
    const value = coerced(schema, path, params.value);
    const done = await changes.change(
      {
        ...planOf(call, params),
        make: (text) => editDocument(text, mergeEdits(text, path, value)),
        summary: value === null ? 'removed' : 'changed',
        section,
        key,
        actionType,
      },
      call,
    );
    return { done, path, section, key };
  }

  async function found(sha: string): Promise<SealedVersion> {
    const version = await db.read(findConfigVersion, { prefix: sha });
    if (version === 'ambiguous') throw new AppError('not_found', `Several versions begin with ${sha}; give more digits`, { param: 'sha' });
    if (version === undefined) throw new AppError('not_found', `Invalid SHA: no version ${sha}; config.history lists them`, { param: 'sha' });
    return version;
  }

  function opened(version: SealedVersion): string {
    const text = versions.textOf(version);
    if (text === undefined)
      throw new AppError('precondition_failed', `Version ${version.number} was sealed with another install key, and cannot be read`, {
        param: 'sha',
      });
    return text;
  }

  const api: SettingsApi = {
    isOwner,
    async change({ edits, ...change }, call) {
      const make = async (text: string) => editDocument(text, typeof edits === 'function' ? await edits(text) : edits);
      const { version, digest, changed, restart } = await changes.change({ ...change, make }, call);
      return { version, digest, changed, restart };
    },
    async settle(options) {
      return configuration.inTurn(async () => (await versions.settle(options)).isWritten);
    },
    adopt: () => changes.adopt(),
  };

  const methods: SettingsMethods = {
    async 'config.read'({ section, written }) {
      const text = configuration.readText();
      const document = written === true ? writtenValue(schema, text, redactText) : undefined;
      const state = {
        sections,
        digest: digestOf(text),
        ...(document !== undefined && { written: section === undefined ? document : (document[section] ?? null) }),
        restartNeeded: [...configuration.restartNeeded],
        ...(configuration.fault !== undefined && { fault: configuration.fault }),
      };
      if (section === undefined) return { config: redactedConfig(schema, configuration.current, redactText), ...state };
      return { section, config: redactedSection(known(section)), ...state };
    },

    async 'config.get'({ section, text }, call) {
      const isRaw = deps.isLocalOwner(call);
      if (text === true && !isRaw)
        throw new AppError('denied', 'The text of config.yaml is for the owner, on the socket of the home folder (the command line uses it)', {
          param: 'text',
        });
      if (isRaw)
        await recordAudit(deps, call, { actionType: 'config.get', classification: 'read', ...(section !== undefined && { target: section }) });
      const file = text === true ? { text: configuration.readText() } : undefined;
      const rest = file === undefined ? {} : { ...file, digest: digestOf(file.text) };
      if (section !== undefined && sections.includes(section))
        return { [section]: isRaw ? (Reflect.get(configuration.current, section) ?? null) : redactedSection(section), ...rest };
      return { ...summaryOf(configuration.current), ...rest };
    },

    async 'config.schema'({ section }) {
      if (section === undefined) return { schema: configJsonSchema(schema), sections };
      const part: unknown = schema.shape[known(section)];
      if (!(part instanceof z.ZodType)) throw new AppError('internal', `Section ${section} has no schema`);
      return { section, schema: { 'x-gatehouse-apply': 'restart', ...configJsonSchema(part) }, sections };
    },

    async 'config.set'(params, call) {
      const { done, path } = await patch(params, 'config.set', call);
      const previous = shownAt(schema, done.before, path, redactText);
      return { ok: true, ...(previous !== undefined && { previous }), ...changedOf(done, params) };
    },

    async 'config.patch'(params, call) {
      if (params.changes !== undefined) {
        if ([params.section, params.key, params.path, params.value].some((one) => one !== undefined))
          throw new AppError('invalid_params', 'Expected either changes, or one change', { param: 'changes' });
        const all = await patchAll({ ...params, changes: params.changes }, call);
        return { patched: params.dryRun !== true, ...changedOf(all, params) };
      }
      const { done, path, section, key } = await patch(params, 'config.patch', call);
      const value = shownAt(schema, done.text, path, redactText);
      return {
        patched: params.dryRun !== true,
        section,
        ...(key !== undefined && { key }),
        ...(value !== undefined && { value }),
        ...changedOf(done, params),
      };
    },

    async 'config.apply'(params, call) {
      const { section, value, text } = params;
      const plan = { ...planOf(call, params), actionType: 'config.apply' };
      if (text !== undefined) {
        if (section !== undefined || value !== undefined)
          throw new AppError('invalid_params', 'Expected either text, or section and value', { param: 'text' });
        refuseMarkers(documentValueOf(text), []);
        const done = await changes.change({ ...plan, make: () => text, summary: 'the whole text', replacesInvalid: true }, call);
        return { applied: params.dryRun !== true, ...changedOf(done, params) };
      }
      if (section === undefined || value === undefined)
        throw new AppError('invalid_params', 'Expected section and value, or text', { param: section === undefined ? 'section' : 'value' });
      refuseMarkers(value, [known(section)]);
      const make = (before: string) => editDocument(before, [{ set: [section], value }]);
      const done = await changes.change({ ...plan, make, summary: 'replaced', section }, call);
      return { applied: params.dryRun !== true, section, ...changedOf(done, params) };
    },

    async 'config.history'({ limit, section }) {
      const listed = await db.read(listConfigVersions, { limit, section });
      return { entries: listed.map(entryOf) };
    },

    async 'config.diff'({ sha, to }) {
      if (to !== undefined) {
        if (sha === undefined) throw new AppError('invalid_params', 'sha: is missing; `to` needs a version to begin with', { param: 'sha' });
        const [from, until] = [await found(sha), await found(to)];
        return { diff: changes.diff(opened(from), opened(until), [`version ${from.number}`, `version ${until.number}`]) };
      }
      const now = { text: configuration.readText(), name: 'config.yaml' };
      if (sha !== undefined) {
        const from = await found(sha);
        return { diff: changes.diff(opened(from), now.text, [`version ${from.number}`, now.name]) };
      }
      const { newest } = await db.read(readConfigState, { homeId: deps.homeId });
      if (newest === undefined) return { diff: '' };
      // An edit by hand that is not a version yet is the last change.
      if (newest.digest !== digestOf(now.text) && versions.textFor(newest, now.text) !== now.text)
        return { diff: changes.diff(opened(newest), now.text, [`version ${newest.number}`, now.name]) };
      const earlier = await db.read(versionBefore, { number: newest.number });
      if (earlier === undefined) return { diff: '' };
      return { diff: changes.diff(opened(earlier), opened(newest), [`version ${earlier.number}`, `version ${newest.number}`]) };
    },

    async 'config.rollback'(params, call) {
      const version = await found(params.sha);
      const stored = opened(version);
      const done = await changes.change(
        {
          ...planOf(call, params),
          origin: 'rollback',
          make: (text) => versions.textFor(version, text) ?? stored,
          summary: `back to version ${version.number}`,
          actionType: 'config.rollback',
          replacesInvalid: true,
        },
        call,
      );
      const isNew = done.text !== done.before;
      return { rolledBack: params.dryRun !== true, sha: version.digest, newCommitSha: isNew ? done.digest : '', ...changedOf(done, params) };
    },

    async 'config.gc'({ olderThan }, call) {
      return configuration.inTurn(async () => {
        const atMs = clock.now();
        const beforeMs = olderThan === undefined ? atMs + 1 : Date.parse(olderThan);
        const audit = auditRow(call, atMs, { actionType: 'config.gc', classification: 'destructive' });
        const { squashed, rootDigest } = await db.write(squashConfigVersions, { beforeMs, audit });
        announceAudit(bus, audit);
        return { gc: true, squashed, ...(rootDigest !== undefined && { newRootSha: rootDigest }) };
      });
    },
  };

  return { sections, api, methods };
}

function changedOf({ changed, restart, digest, version, diff, protected: guarded }: Done, { dryRun }: Asked) {
  return {
    restarting: false as const,
    changed: [...changed],
    restart: [...restart],
    digest,
    version,
    ...(dryRun === true && { dryRun: true as const, diff: diff ?? '', protected: [...(guarded ?? [])] }),
  };
}

function entryOf({ number, digest, atMs, principalId, origin, summary, section, key, traceId }: ConfigVersion) {
  const target = [section, key].filter((part) => part !== null).join('.');
  return {
    sha: digest,
    version: number,
    timestamp: atMs,
    from: origin,
    metadata: {
      ...(section !== null && { section }),
      ...(key !== null && { key }),
      user: principalId,
      ...(traceId !== null && { traceId }),
      summary,
    },
    message: target === '' ? summary : `${target}: ${summary}`,
  };
}

/** The parts that clients of the method expect without a section. */
function summaryOf(config: object): Record<string, unknown> {
  const { gateway, logging } = Summary.parse(config);
  return { logLevel: logging.level, gateway };
}

const Summary = z.object({
  gateway: z.object({ enabled: z.boolean(), host: z.string(), port: z.number() }),
  logging: z.object({ level: z.string() }),
});

function documentValueOf(text: string): unknown {
  try {
    return documentValue(text);
  } catch (error) {
    throw error instanceof EditError ? new AppError('invalid_params', error.message, { param: 'text' }) : error;
  }
}
