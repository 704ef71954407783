import type { SkillsConfig } from '../config.ts';
import type { Live } from '../../../../kernel/config/live.ts';
import type { SkillFinding } from '@gatehouse/contract';
import { SkillName } from '@gatehouse/contract';
import { type FolderPlace, listFolders, tidyFolders } from '../../../../kernel/safe-folder.ts';
import { manifestName, textOf } from './bundle.ts';
import { loadText } from '../activation/load-text.ts';
import type { SkillManifest } from './manifest.ts';
import { fileDigest, readBundle, stampOf } from './read-bundle.ts';
import type { ProvenanceRow } from '../store.ts';
import { type Tier, type Verdict, vetBundle } from '../vetting/vet.ts';

/** A skill in a folder, with its verdict. */
export interface FoundSkill {
  readonly name: string;
  /** Id of the agent; empty for a shared skill. */
  readonly owner: string;
  readonly place: FolderPlace;
  readonly digest: string;
  readonly verdict: Verdict;
  readonly findings: readonly SkillFinding[];
  readonly fileCount: number;
  /** Present while the bytes are those that passed the gate. */
  readonly provenance: ProvenanceRow | undefined;
  readonly tier: Tier;
  readonly description: string;
  /** Why it is not loaded, or what to load. */
  readonly loaded: { readonly manifest: SkillManifest; readonly body: string; readonly files: ReadonlyMap<string, string> } | string;
}

/** Skills of one folder; more would make every scan slow. */
const maxSkills = 200;

export interface SkillRootDeps {
  readonly owner: string;
  readonly place: FolderPlace;
  readonly config: Live<Pick<SkillsConfig, 'installVetting' | 'unvetted'>>;
  readonly provenanceOf: (owner: string, name: string) => ProvenanceRow | undefined;
}

/** The skills of one folder. Reads and writes are serialized. */
export class SkillRoot {
  readonly owner: string;
  readonly place: FolderPlace;
  skills: ReadonlyMap<string, FoundSkill> = new Map();
  /** Grows when the skills change. */
  version = 0;
  readonly #deps: SkillRootDeps;
  #stamps = new Map<string, string>();
  #last: Promise<unknown> = Promise.resolve();
  #tidied = false;

  constructor(deps: SkillRootDeps) {
    this.owner = deps.owner;
    this.place = deps.place;
    this.#deps = deps;
  }

  /** Runs while holding this folder. */
  alone<T>(work: () => Promise<T>): Promise<T> {
    const next = this.#last.then(work);
    this.#last = next.catch(() => undefined);
    return next;
  }

  folderOf(name: string): FolderPlace {
    return { base: this.place.base, within: [...this.place.within, name] };
  }

  /** Reads changes; returns new and changed skills, and how many were removed. Call it inside `alone`. */
  async scan(): Promise<{ readonly changed: readonly FoundSkill[]; readonly gone: number }> {
    if (!this.#tidied) {
      this.#tidied = true;
      await tidyFolders(this.place);
    }
    const folders = (await listFolders(this.place)).filter(({ name }) => SkillName().safeParse(name).success).slice(0, maxSkills);
    const next = new Map<string, FoundSkill>();
    const stamps = new Map<string, string>();
    const changed: FoundSkill[] = [];
    for (const { name, isLink } of folders) {
      const found = isLink ? { stamp: 'link', skill: this.#refused(name, 'its folder is a link') } : await this.#look(name);
      if (found === undefined) continue;
      next.set(name, found.skill);
      stamps.set(name, found.stamp);
      if (this.#stamps.get(name) !== found.stamp) changed.push(found.skill);
    }
    const gone = [...this.skills.keys()].filter((name) => !next.has(name)).length;
    if (changed.length > 0 || gone > 0) {
      this.skills = next;
      this.#stamps = stamps;
      this.version += 1;
    }
    return { changed, gone };
  }

  async #look(name: string): Promise<{ readonly stamp: string; readonly skill: FoundSkill } | undefined> {
    const { config, provenanceOf, owner } = this.#deps;
    const { installVetting: limits, unvetted } = config.current;
    const place = this.folderOf(name);
    const row = provenanceOf(owner, name);
    const tree = await stampOf(place, limits);
    if (tree === undefined) return undefined;
    // Other limits and rules may find something else in the same files.
    const stamp = `${row?.digest ?? ''}\n${unvetted} ${JSON.stringify(limits)}\n${tree.stamp}`;
    const before = this.skills.get(name);
    if (before !== undefined && this.#stamps.get(name) === stamp) return { stamp, skill: before };
    const bundle = await readBundle(place, tree.entries, tree.more, limits);
    const { digest, verdict, findings, skill } = await vetBundle(bundle, limits);
    const provenance = row?.digest === digest && bundle.odd.length === 0 ? row : undefined;
    const about = {
      name,
      owner,
      place,
      digest,
      verdict,
      findings,
      provenance,
      fileCount: bundle.files.length,
      description: skill?.manifest.description ?? '',
    };
    // In an agent's own workspace the author of skills that bypassed the gate is unknown.
    const tier: Tier = provenance?.tier ?? (owner === '' ? 'operator' : 'agent-authored');
    const refuse = (why: string) => ({ stamp, skill: { ...about, tier, loaded: why } });
    if (skill === undefined) return refuse('its manifest or structure is not valid');
    if (skill.manifest.name !== name) return refuse(`its manifest names it ${skill.manifest.name}`);
    if (provenance === undefined && unvetted === 'never') return refuse('it did not pass the gate');
    if (provenance === undefined && verdict !== 'safe')
      return refuse(row === undefined ? `vetting finds it ${verdict}` : `it was changed, and vetting finds it ${verdict}`);
    const files = new Map<string, string>();
    for (const { path, bytes } of bundle.files) if (path !== manifestName && textOf(bytes) !== undefined) files.set(path, fileDigest(bytes));
    return { stamp, skill: { ...about, tier, loaded: { manifest: skill.manifest, body: loadText(skill.body), files } } };
  }

  #refused(name: string, why: string): FoundSkill {
    const { owner } = this.#deps;
    return {
      name,
      owner,
      place: this.folderOf(name),
      digest: '',
      verdict: 'dangerous',
      findings: [],
      fileCount: 0,
      provenance: undefined,
      tier: 'agent-authored',
      description: '',
      loaded: why,
    };
  }
}
