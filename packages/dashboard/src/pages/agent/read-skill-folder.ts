/** A text file of a skill; its path is relative to the folder and uses "/". */
export interface SkillFile {
  readonly path: string;
  readonly content: string;
}

/** The limits of the server: a larger folder is not read at all. */
const maxFiles = 200;
const maxBytes = 32 * 1024 * 1024;

/** Reads a folder selected in the browser; throws an error that names the first file that is not text. */
export async function readSkillFolder(chosen: readonly Pick<File, 'name' | 'webkitRelativePath' | 'size' | 'arrayBuffer'>[]): Promise<{
  readonly name: string;
  readonly files: readonly SkillFile[];
}> {
  if (chosen.length > maxFiles) throw new Error(`The folder has ${chosen.length} files; a skill has at most ${maxFiles}.`);
  if (chosen.reduce((sum, { size }) => sum + size, 0) > maxBytes) throw new Error(`The folder is larger than ${maxBytes / 1024 / 1024} MiB.`);
  const files = await Promise.all(
    chosen.map(async (file) => {
      const path = file.webkitRelativePath.split('/').slice(1).join('/') || file.name;
      try {
        return { path, content: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(await file.arrayBuffer()) };
      } catch {
        throw new Error(`${path} is not a text file. A skill may only contain text files.`);
      }
    }),
  );
  return { name: chosen[0]?.webkitRelativePath.split('/')[0] ?? '', files };
}
