import { ConfigError } from '../kernel/config/config-error.ts';
import type { Environment } from '../kernel/config/references.ts';
import { InstallKey } from '../kernel/install-key.ts';
import { modeOf, quoted, readOwnFile, UnsafePathError } from '../kernel/private-file.ts';

const valueName = 'GATEHOUSE_MASTER_KEY';
const fileName = 'GATEHOUSE_MASTER_KEY_FILE';
const expected = 'expected 32 bytes as 64 hexadecimal digits or in base64, such as "openssl rand -hex 32" prints';

/**
 * Returns the install key that the environment names, for daemons that share a database: the value of GATEHOUSE_MASTER_KEY, or the
 * content of the file at GATEHOUSE_MASTER_KEY_FILE. Undefined when neither is set: the home folder has one.
 */
export function masterKeyOf(env: Environment): InstallKey | undefined {
  const [value, file] = [env[valueName] || undefined, env[fileName] || undefined];
  if (value !== undefined && file !== undefined)
    throw new ConfigError([{ source: valueName, message: `is set along with ${fileName}; set one of them` }]);
  if (value !== undefined) {
    const root = bytesOf(value);
    if (root === undefined) throw new ConfigError([{ source: valueName, message: expected }]);
    return new InstallKey(root);
  }
  return file === undefined ? undefined : readKeyFile(file);
}

/** Services get such files from their manager: linked, owned by root, readable for a group; never readable for everybody. */
function readKeyFile(path: string): InstallKey {
  const file = readOwnFile(path, { maxBytes: 1024, followLinks: true });
  if (file === undefined) throw new UnsafePathError(path, `does not exist, and ${fileName} names it`);
  if (process.platform !== 'win32' && (file.stats.mode & 0o007) !== 0)
    throw new UnsafePathError(path, `everybody on this machine has access (mode ${modeOf(file.stats)}); close it with: chmod 640 ${quoted(path)}`);
  const root = bytesOf(file.text);
  if (root === undefined) throw new UnsafePathError(path, expected);
  return new InstallKey(root);
}

function bytesOf(text: string): Buffer | undefined {
  const word = text.trim();
  if (/^[0-9a-f]{64}$/i.test(word)) return Buffer.from(word, 'hex');
  return /^[\w+/-]{43}=?$/.test(word) ? Buffer.from(word, 'base64') : undefined;
}
