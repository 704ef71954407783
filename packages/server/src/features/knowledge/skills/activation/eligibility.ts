import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import type { AgentConfig } from '@gatehouse/contract';
import type { SkillManifest } from '../bundles/manifest.ts';

/** Programs of this machine, as far as skills require them. */
export interface Machine {
  /** Looks up programs that were never looked up or were missing. Returns true when a new one was found. */
  look(bins: Iterable<string>): Promise<boolean>;
  /** Returns why a skill cannot work here. */
  missing(manifest: SkillManifest): readonly string[];
}

const maxPathFolders = 64;

export function createMachine(env: Readonly<Record<string, string | undefined>>): Machine {
  const folders = (env['PATH'] ?? '')
    .split(':')
    .filter((folder) => folder.startsWith('/'))
    .slice(0, maxPathFolders);
  const found = new Set<string>();
  return {
    async look(bins) {
      let hasNew = false;
      for (const bin of new Set(bins)) {
        if (found.has(bin)) continue;
        // The name of a program has no separator: the manifest was parsed.
        for (const folder of folders) {
          if (
            await access(`${folder}/${bin}`, constants.X_OK).then(
              () => true,
              () => false,
            )
          ) {
            found.add(bin);
            hasNew = true;
            break;
          }
        }
      }
      return hasNew;
    },
    missing({ gatehouse: { os, requires } }) {
      const reasons: string[] = [];
      if (os.length > 0 && !os.map((name) => systems[name.toLowerCase()] ?? name.toLowerCase()).includes(process.platform))
        reasons.push(`it is for ${os.join(', ')}`);
      for (const bin of requires.bins) if (!found.has(bin)) reasons.push(`the program ${bin} is missing`);
      for (const name of requires.env) if ((env[name] ?? '') === '') reasons.push(`the variable ${name} is not set`);
      return reasons;
    },
  };
}

const systems: Readonly<Record<string, string>> = { macos: 'darwin', mac: 'darwin', osx: 'darwin', windows: 'win32' };

/** Returns why an agent does not use a skill that could work here. */
export function refusalsOf(name: string, { enabled, allow, deny }: AgentConfig['skills']): readonly string[] {
  if (!enabled) return ['skills of this agent are turned off'];
  if (deny.includes(name)) return ['the agent is denied it'];
  if (allow.length > 0 && !allow.includes(name)) return ['it is not in the agent’s list of allowed skills'];
  return [];
}
