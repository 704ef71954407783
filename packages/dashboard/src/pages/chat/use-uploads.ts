import { t } from '../../language.ts';
import { useRef, useState } from 'react';
import type { Attachment } from '../../data/chat-thread.ts';
import { useSession } from '../../data/context.ts';
import { describeError } from '../../data/errors.ts';

/** The server's limit for one message. */
const maxAttachments = 5;

/** A file of the message that is being written. */
export interface Upload {
  readonly key: string;
  readonly name: string;
  readonly size: number;
  /** Set once the server has stored it. */
  readonly info: Attachment | undefined;
  readonly error: string | undefined;
}

export interface Uploads {
  readonly list: readonly Upload[];
  /** True while no upload is running and none has failed. */
  readonly isSettled: boolean;
  readonly isFull: boolean;
  /** Says why files were left out; empty when none were. */
  readonly note: string;
  readonly add: (files: readonly File[]) => void;
  readonly remove: (key: string) => void;
  readonly clear: () => void;
}

/** Uploads files as soon as they are chosen. */
export function useUploads(initial: readonly Attachment[]): Uploads {
  const { client } = useSession();
  const [list, setList] = useState<readonly Upload[]>(() => initial.map(uploadOf));
  const [note, setNote] = useState('');
  const made = useRef(0);

  const settle = (key: string, part: Partial<Upload>): void =>
    setList((before) => before.map((one) => (one.key === key ? { ...one, ...part } : one)));

  function add(files: readonly File[]): void {
    const room = maxAttachments - list.length;
    setNote(files.length > room ? t('A message can have at most {maxAttachments} files.', { maxAttachments }) : '');
    for (const file of files.slice(0, room)) {
      made.current += 1;
      const key = `new-${made.current}`;
      setList((before) => [...before, { key, name: file.name, size: file.size, info: undefined, error: undefined }]);
      client.upload(file).then(
        ({ mediaId, contentType, size, fileName }) =>
          settle(key, { info: { mediaId, contentType, size, ...(fileName !== undefined && { fileName }) } }),
        (error: unknown) => settle(key, { error: describeError(error).message }),
      );
    }
  }

  return {
    list,
    isSettled: list.every(({ info, error }) => info !== undefined && error === undefined),
    isFull: list.length >= maxAttachments,
    note,
    add,
    remove: (key) => setList(list.filter((one) => one.key !== key)),
    clear() {
      setList([]);
      setNote('');
    },
  };
}

/** Returns the files that the server has stored. */
export function attachmentsOf(list: readonly Upload[]): readonly Attachment[] {
  return list.flatMap(({ info }) => info ?? []);
}

function uploadOf(info: Attachment): Upload {
  return { key: info.mediaId, name: info.fileName ?? info.mediaId, size: info.size, info, error: undefined };
}
