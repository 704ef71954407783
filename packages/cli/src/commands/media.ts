import { basename, resolve } from 'node:path';
import type { MediaInfo, MediaList } from '@gatehouse/contract';
import type { Command } from 'commander';
import { connect } from '../connection/target.ts';
import { type Io, printLine, writePaced } from '../io.ts';
import { plainText } from '../render/plain.ts';
import { renderBytes, renderColumns, renderTable, renderTime } from '../render/table.ts';
import { confirm } from './confirm.ts';
import { addGroup } from './group.ts';
import { writeNewFile } from './new-file.ts';
import { openFile } from './open-file.ts';
import { type CommonFlags, countOption, withConnection } from './options.ts';
import { print } from './print.ts';

/** `gatehouse media list | upload | download | info | delete`. */
export function addMediaCommand(program: Command, io: Io): void {
  const media = addGroup(program, 'media').summary('list, upload, download and delete files').description('Files that the token may access.');

  addList(media, io);
  addUpload(media, io);
  addDownload(media, io);
  addInfo(media, io);
  addDelete(media, io);
}

function addList(media: Command, io: Io): void {
  withConnection(media.command('list', { isDefault: true }))
    .description('Lists the files, newest first.')
    .addOption(countOption('--limit <n>', 'how many, at most 200', 50))
    .addOption(countOption('--offset <n>', 'number of entries to skip', 0))
    .action(async ({ limit, offset, ...flags }: CommonFlags & { limit: number; offset: number }) => {
      const { client } = await connect(flags, io);
      const listed = await client.listMedia({ limit, offset });
      print(io, flags, listed, () => mediaTable(listed, offset));
    });
}

function addUpload(media: Command, io: Io): void {
  withConnection(media.command('upload <file...>'))
    .description('Uploads files and prints their ids, for use as attachments.')
    .option('--type <type>', 'content type, such as image/png (default: detected by the server)')
    .action(async (files: string[], { type, ...flags }: CommonFlags & { type?: string }) => {
      const { client } = await connect(flags, io);
      const stored: MediaInfo[] = [];
      // Sequentially, so that the ids are in the order of the files.
      for (const name of files) {
        const info = await client.upload(await openFile(resolve(io.workingDir, name)), { fileName: basename(name), contentType: type });
        stored.push(info);
        if (flags.output !== 'json') printLine(io.stdout, info.mediaId);
      }
      if (flags.output === 'json') printLine(io.stdout, JSON.stringify(stored));
    });
}

function addDownload(media: Command, io: Io): void {
  withConnection(media.command('download <id> [file]'))
    .description('Writes a file to FILE (default: its stored name, in this folder), which must not exist; - is standard output.')
    .action(async (id: string, file: string | undefined, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const name = file ?? safeName((await client.mediaInfo(id)).fileName) ?? id;
      const { body } = await client.media(id);
      const content = body ?? new Blob([]).stream();
      if (name === '-') {
        for await (const chunk of content) await writePaced(io.stdout, chunk);
        return;
      }
      const written = await writeNewFile(name, content, io);
      print(io, flags, written, () => `Wrote ${plainText(written.file)}, ${renderBytes(written.bytes)}.`);
    });
}

function addInfo(media: Command, io: Io): void {
  withConnection(media.command('info <id>'))
    .description('Shows the details of a file.')
    .action(async (id: string, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const info = await client.mediaInfo(id);
      print(io, flags, info, infoText);
    });
}

function addDelete(media: Command, io: Io): void {
  withConnection(media.command('delete <id>'))
    .description('Permanently deletes a file.')
    .option('-y, --yes', 'skip the confirmation')
    .action(async (id: string, { yes, ...flags }: CommonFlags & { yes?: true }) => {
      if (yes !== true) await confirm(`Delete the file ${id}?`, io);
      const { client } = await connect(flags, io);
      await client.deleteMedia(id);
      print(io, flags, { mediaId: id, deleted: true }, () => `Deleted ${plainText(id)}.`);
    });
}

/** Returns a safe base name, never a hidden file: the uploader chose the name. */
function safeName(name: string | undefined): string | undefined {
  const last = name?.split(/[/\\]/).at(-1) ?? '';
  return /^[^.\p{Cc}][^\p{Cc}]*$/u.test(last) ? last : undefined;
}

function mediaTable({ media, total }: MediaList, offset: number): string {
  if (media.length === 0) return total === 0 ? 'No files.' : `${total} files, none after ${offset}.`;
  const table = renderTable(
    ['Id', 'Type', 'Size', 'Name', 'Stored'],
    media.map((one) => [one.mediaId, one.contentType, renderBytes(one.size), one.fileName, renderTime(one.savedAt)]),
  );
  return media.length === total ? table : `${table}\n${offset + 1} to ${offset + media.length} of ${total}`;
}

function infoText({ mediaId, contentType, size, fileName, savedAt }: MediaInfo): string {
  return renderColumns([
    ['id', mediaId],
    ['type', contentType],
    ['size', `${renderBytes(size)} (${size} bytes)`],
    ['name', fileName],
    ['stored', renderTime(savedAt)],
  ]);
}
