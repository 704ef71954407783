import { layeredEnvironment } from '../features/operations/secrets/vault/environment.ts';
import { systemClock } from '../kernel/clock.ts';
import { ConfigError } from '../kernel/config/config-error.ts';
import { maxConfigBytes } from '../kernel/config/load.ts';
import type { Environment } from '../kernel/config/references.ts';
import { homePaths } from '../kernel/home-paths.ts';
import { readOwnFile, UnsafePathError } from '../kernel/private-file.ts';
import { probeHttp } from '../llm/discover.ts';
import { checkBuild } from '../wiring/config-fault.ts';
import { loadRootConfig } from './load-root-config.ts';
import { copiedSecrets } from './stored-secrets.ts';

/** Checks a configuration file (config.yaml of the home when none is named) as a start would; returns every problem as a line. */
export async function checkConfig(
  home: string,
  given: string | undefined,
  env: Environment,
): Promise<{ readonly file: string; readonly problems: readonly string[] }> {
  const file = given ?? homePaths(home).configFile;
  try {
    const read = readOwnFile(file, { maxBytes: maxConfigBytes, followLinks: true });
    if (read === undefined) return { file, problems: [`${file} does not exist`] };
    const secrets = copiedSecrets(homePaths(home), env);
    const loaded = loadRootConfig({ path: file, text: read.text }, env, {}, secrets);
    await checkBuild({ env: layeredEnvironment(env, secrets), probe: probeHttp, clock: systemClock }, loaded);
    return { file, problems: [] };
  } catch (error) {
    if (error instanceof ConfigError || error instanceof UnsafePathError) return { file, problems: error.message.split('\n') };
    throw error;
  }
}
