import type { Params } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import { announceAudit, auditRow } from '../../../kernel/audit.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import { removeFolder } from '../../../kernel/safe-folder.ts';
import type { Agent, AgentsApi } from '../../agents/agents/api.ts';
import { type ArchiveDeps, fetchFolder } from './bundles/archive.ts';
import { type Bundle, type BundleFile, digestOf, manifestName } from './bundles/bundle.ts';
import { type Installed, type Installing, type InstallDeps, installSkill } from './bundles/install.ts';
import { readBundle, stampOf } from './bundles/read-bundle.ts';
import type { FoundSkill, SkillRoot } from './bundles/root.ts';
import { forgetSkill, type ProvenanceRow, type StatRow } from './store.ts';
import type { Tier } from './vetting/vet.ts';

export type SkillMethods = HandlersOf<`skills.${'list' | 'upload' | 'import' | 'create' | 'update' | 'delete'}`>;

export interface SkillMethodsDeps extends InstallDeps, ArchiveDeps {
  readonly agents: AgentsApi;
  readonly shared: SkillRoot;
  readonly rootOf: (agent: Agent) => SkillRoot;
  /** Every skill in the agent's folders, and why one is not active. */
  readonly describe: (
    agent: Agent,
  ) => readonly { readonly skill: FoundSkill; readonly reasons: readonly string[]; readonly stat: StatRow | undefined }[];
  /** Provenance recorded under a name, whatever is there now. */
  readonly provenanceOf: (owner: string, name: string) => ProvenanceRow | undefined;
  readonly removed: (root: SkillRoot, name: string) => Promise<void>;
}

/** How long a refused import may be confirmed, and how many are remembered. */
const confirmableMs = 600_000;
const maxConfirmable = 200;

export function createSkillMethods(deps: SkillMethodsDeps): SkillMethods {
  const { agents, clock, db, bus, limits } = deps;
  /** What was shown to whom: a repository may change between the refusal and the repetition. */
  const shown = new Map<string, number>();

  function known(agentId: string = agents.defaultId, call: CallContext): Agent {
    if (call.agentCaller !== undefined) throw new AppError('denied', 'This method is for administrators, not for agents');
    const agent = agents.find(agentId);
    if (agent === undefined || call.identity.agents?.includes(agentId) === false)
      throw new AppError('not_found', `Agent not found: ${agentId}`, { param: 'agentId' });
    return agent;
  }

  function place({ scope, agentId }: { readonly scope: 'local' | 'shared'; readonly agentId?: string | undefined }, call: CallContext) {
    const agent = known(agentId, call);
    if (scope === 'shared' && !agent.isDefault)
      throw new AppError('denied', `Only the default agent, ${agents.defaultId}, may write shared skills: use scope local for ${agent.id}`, {
        param: 'scope',
      });
    if (scope === 'shared' && call.identity.agents !== undefined)
      throw new AppError('denied', 'A token limited to some agents cannot write shared skills: use scope local', { param: 'scope' });
    const root = scope === 'shared' ? deps.shared : deps.rootOf(agent);
    const tier: Tier = agent.isDefault ? 'operator' : 'agent-authored';
    return { agent, root, tier };
  }

  /** Checks the disk, not the loaded skills, because refused skills are there too. */
  async function exists(root: SkillRoot, name: string): Promise<boolean> {
    return (await stampOf(root.folderOf(name), limits)) !== undefined;
  }

  async function install(call: CallContext, about: Installing): Promise<Installed> {
    const { root, name } = about;
    return root.alone(async () => {
      if (!about.replace && name !== undefined && (await exists(root, name))) throw taken(name);
      try {
        return await installSkill(deps, call, about);
      } catch (error) {
        if (error instanceof AppError && error.code === 'conflict') throw taken(name ?? 'of this name');
        throw error;
      }
    });
  }

  const answer = ({ name, path, verdict, digest, findings }: Installed) => ({
    ok: true as const,
    name,
    path,
    verdict,
    sha256: digest,
    findings: [...findings],
  });
  const single = (content: string): Bundle => ({
    files: [{ path: manifestName, bytes: Buffer.from(content.toWellFormed()), executable: false }],
    odd: [],
  });

  return {
    'skills.list': async ({ agentId = agents.defaultId }, call) => {
      const own = call.agentCaller === undefined || call.agentCaller.agentId === agentId;
      const agent = own && call.identity.agents?.includes(agentId) !== false ? agents.find(agentId) : undefined;
      const skills = agent === undefined ? [] : deps.describe(agent).map(toWire);
      return { skills, total: skills.length };
    },

    'skills.upload': async ({ name, files, force, ...where }, call) => {
      const { agent, root, tier } = place(where, call);
      const bundle = { files: files.map(({ path, content }) => ({ path, bytes: Buffer.from(content.toWellFormed()), executable: false })), odd: [] };
      const about = {
        root,
        name,
        agentId: agent.id,
        tier,
        bundle,
        source: 'uploaded' as const,
        forced: () => force,
        replace: false,
        action: 'skill.upload',
      };
      return { ...answer(await install(call, about)), fileCount: files.length };
    },

    'skills.import': async ({ url, force, ...where }, call) => {
      const { agent, root } = place(where, call);
      const bundle = await fetchFolder(deps, url, call.signal);
      const keyOf = (digest: string) => `${call.identity.principalId} ${root.owner} ${url} ${digest}`;
      const now = clock.now();
      for (const [key, atMs] of shown) if (atMs + confirmableMs < now || shown.size > maxConfirmable) shown.delete(key);
      let digest = '';
      const forced = (read: string) => force && shown.has(keyOf((digest = read)));
      const about = {
        root,
        agentId: agent.id,
        tier: 'community' as const,
        bundle,
        source: 'imported' as const,
        url,
        forced,
        replace: false,
        action: 'skill.import',
      };
      try {
        const installed = await install(call, { ...about, forced: (read) => forced((digest = read)) });
        return { ...answer(installed), fileCount: bundle.files.length };
      } catch (error) {
        if (error instanceof AppError && error.details.param === 'force' && digest !== '') shown.set(keyOf(digest), now);
        throw error;
      }
    },

    'skills.create': async ({ name, content, force, ...where }, call) => {
      const { agent, root, tier } = place(where, call);
      const about = { root, name, agentId: agent.id, tier, bundle: single(content), source: 'created' as const, forced: () => force, replace: false };
      return answer(await install(call, { ...about, action: 'skill.create' }));
    },

    'skills.update': async ({ name, content, force, ...where }, call) => {
      const { agent, root, tier } = place(where, call);
      return root.alone(async () => {
        const folder = root.folderOf(name);
        const tree = await stampOf(folder, limits);
        if (tree === undefined) throw new AppError('not_found', `Skill not found: ${name}`, { param: 'name' });
        const before = await readBundle(folder, tree.entries, tree.more, limits);
        const bundle = { files: [...before.files.filter(({ path }) => path !== manifestName), ...single(content).files], odd: before.odd };
        const row = deps.provenanceOf(root.owner, name);
        const isForeign = row?.tier === 'community';
        const about = {
          root,
          name,
          agentId: agent.id,
          bundle,
          source: isForeign ? ('imported' as const) : ('created' as const),
          tier: tierOfRest(before.files, root, row) ?? tier,
          ...(isForeign && row.url !== null && { url: row.url }),
          forced: () => force,
          replace: true,
          action: 'skill.update',
        };
        return answer(await installSkill(deps, call, about));
      });
    },

    'skills.delete': async ({ name, ...where }: Params<'skills.delete'>, call) => {
      const { agent, root } = place(where, call);
      await root.alone(async () => {
        if (!(await removeFolder(root.place, name))) {
          if (where.scope === 'local' && (await exists(deps.shared, name)))
            throw new AppError('precondition_failed', `${name} is a shared skill: delete it with scope shared`, { param: 'scope' });
          if (where.scope === 'shared' && (await exists(deps.rootOf(agent), name)))
            throw new AppError('precondition_failed', `${name} is not in the shared skills directory: delete it with scope local`, {
              param: 'scope',
            });
          throw new AppError('not_found', `Skill not found: ${name}`, { param: 'name' });
        }
        const audit = auditRow(call, clock.now(), {
          actionType: 'skill.delete',
          classification: 'destructive',
          target: name,
          metadata: { scope: where.scope, agentId: agent.id },
        });
        await db.write(forgetSkill, { key: { owner: root.owner, name }, audit });
        await deps.removed(root, name);
        announceAudit(bus, audit);
      });
      return { ok: true as const };
    },
  };
}

/** Tier of a skill of which one file is replaced: that of the author of the rest, as long as it is unchanged. Undefined: the caller's. */
function tierOfRest(files: readonly BundleFile[], root: SkillRoot, row: ProvenanceRow | undefined): Tier | undefined {
  if (row?.tier === 'community') return row.tier;
  if (root.owner === '' || files.every(({ path }) => path === manifestName)) return undefined;
  return row?.tier === 'operator' && row.digest === digestOf(files) ? undefined : 'agent-authored';
}

function taken(name: string): AppError {
  return new AppError('conflict', `Skill already exists: ${name}; use skills.update, or delete it first`, { param: 'name' });
}

function toWire({ skill, reasons, stat }: ReturnType<SkillMethodsDeps['describe']>[number]) {
  const { name, owner, description, verdict, findings, fileCount, digest, provenance, loaded } = skill;
  const manifest = typeof loaded === 'string' ? undefined : loaded.manifest;
  return {
    name,
    description,
    scope: owner === '' ? ('shared' as const) : ('local' as const),
    location: owner === '' ? `${name}/${manifestName}` : `skills/${name}/${manifestName}`,
    source: provenance?.source ?? (owner === '' ? ('local' as const) : ('workspace' as const)),
    state: manifest === undefined ? ('rejected' as const) : reasons.length > 0 ? ('ineligible' as const) : ('active' as const),
    reasons: [...reasons],
    ...(manifest?.disableModelInvocation === true && { disableModelInvocation: true }),
    userInvocable: manifest?.userInvocable ?? false,
    verdict,
    findings: [...findings],
    fileCount,
    sha256: digest,
    standing: stat?.standing ?? ('neutral' as const),
    uses: stat?.uses ?? 0,
    failures: stat?.failures ?? 0,
    ...(provenance !== undefined && {
      provenance: {
        tier: provenance.tier,
        forced: provenance.forced === 1,
        ...(provenance.url !== null && { url: provenance.url }),
        by: provenance.principalId,
        at: provenance.atMs,
      },
    }),
  };
}
