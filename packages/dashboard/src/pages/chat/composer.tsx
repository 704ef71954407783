import { useEffect, useEffectEvent, useRef, useState } from 'react';
import type { Attachment, Unsent } from '../../data/chats.ts';
import { useSession } from '../../data/context.ts';
import { describeError } from '../../data/errors.ts';
import { bytes } from '../../data/format.ts';
import { Icon } from '../../ui/icon.tsx';
import { Button, IconButton } from '../../ui/parts.tsx';

interface Upload {
  readonly key: string;
  readonly name: string;
  readonly size: number;
  readonly info: Attachment | undefined;
  readonly error: string | undefined;
}

/** The server's limit for one message. */
const maxAttachments = 5;

/** The message field: Enter sends, Shift+Enter inserts a line break; files are added by button, drop or paste. */
export function Composer({
  initial,
  running,
  disabled,
  onChange,
  onSend,
  onStop,
}: {
  /** The unsent message from before another page was opened. */
  readonly initial: Unsent;
  readonly running: boolean;
  readonly disabled: boolean;
  /** Called with the unsent message, to keep it. */
  readonly onChange: (unsent: Unsent) => void;
  readonly onSend: (text: string, attachments: readonly Attachment[]) => void;
  readonly onStop: () => void;
}) {
  const { client } = useSession();
  const [text, setText] = useState(initial.text);
  const [uploads, setUploads] = useState(() => initial.attachments.map(uploadOf));
  const [over, setOver] = useState(false);
  const [note, setNote] = useState('');
  const picker = useRef<HTMLInputElement>(null);
  const area = useRef<HTMLTextAreaElement>(null);
  const form = useRef<HTMLFormElement>(null);
  const made = useRef(0);
  const busy = uploads.some(({ info, error }) => info === undefined && error === undefined);
  const ready = text.trim() !== '' && !busy && !running && !disabled && uploads.every(({ error }) => error === undefined);

  useEffect(() => {
    if (!disabled) focusWithoutTouch(area.current);
  }, [disabled]);
  useEffect(() => {
    // Doesn't take the focus from a user who reads or searches while an answer is written.
    const { activeElement } = document;
    if (!running && (activeElement === document.body || form.current?.contains(activeElement) === true)) focusWithoutTouch(area.current);
  }, [running]);

  const keep = useEffectEvent(onChange);
  useEffect(() => {
    keep({ text, attachments: uploads.flatMap(({ info }) => info ?? []) });
  }, [text, uploads]);

  const settle = (key: string, part: Partial<Upload>): void =>
    setUploads((before) => before.map((one) => (one.key === key ? { ...one, ...part } : one)));

  function take(files: readonly File[]): void {
    const room = maxAttachments - uploads.length;
    setNote(files.length > room ? `A message can have at most ${maxAttachments} files.` : '');
    for (const file of files.slice(0, room)) {
      made.current += 1;
      const key = `new-${made.current}`;
      setUploads((before) => [...before, { key, name: file.name, size: file.size, info: undefined, error: undefined }]);
      client.upload(file).then(
        ({ mediaId, contentType, size, fileName }) =>
          settle(key, { info: { mediaId, contentType, size, ...(fileName !== undefined && { fileName }) } }),
        (error: unknown) => settle(key, { error: describeError(error).message }),
      );
    }
  }

  function send(): void {
    if (!ready) return;
    onSend(
      text.trim(),
      uploads.flatMap(({ info }) => info ?? []),
    );
    setText('');
    setUploads([]);
    setNote('');
  }

  return (
    <form
      ref={form}
      className={over ? 'composer over' : 'composer'}
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
      onDragOver={(event) => {
        if (!event.dataTransfer.types.includes('Files')) return;
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        setOver(false);
        if (event.dataTransfer.files.length === 0) return;
        event.preventDefault();
        take([...event.dataTransfer.files]);
      }}
    >
      {uploads.length > 0 && (
        <ul className="uploads" aria-label="Attachments">
          {uploads.map(({ key, name, size, info, error }) => (
            <li key={key} className={error === undefined ? 'upload' : 'upload bad'}>
              <Icon name={error === undefined ? 'file' : 'warning'} />
              <span className="upload-name" dir="auto">
                {name}
              </span>
              <span className="hint">{error ?? (info === undefined ? 'uploading…' : bytes(size))}</span>
              <IconButton icon="close" label={`Remove ${name}`} onClick={() => setUploads(uploads.filter((one) => one.key !== key))} />
            </li>
          ))}
        </ul>
      )}
      {note !== '' && (
        <p className="hint" role="status">
          {note}
        </p>
      )}
      <div className="composer-row">
        <input
          ref={picker}
          type="file"
          multiple
          hidden
          aria-hidden="true"
          tabIndex={-1}
          onChange={(event) => {
            take([...(event.target.files ?? [])]);
            event.target.value = '';
          }}
        />
        <IconButton
          icon="clip"
          label="Attach files"
          disabled={disabled || uploads.length >= maxAttachments}
          onClick={() => picker.current?.click()}
        />
        <textarea
          ref={area}
          aria-label="Message"
          dir="auto"
          placeholder="Write a message"
          rows={1}
          value={text}
          disabled={disabled}
          onChange={(event) => setText(event.target.value)}
          onPaste={(event) => {
            if (event.clipboardData.files.length === 0) return;
            event.preventDefault();
            take([...event.clipboardData.files]);
          }}
          onKeyDown={(event) => {
            // Enter also confirms an IME composition; it must not send then.
            if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return;
            event.preventDefault();
            send();
          }}
        />
        {running ? (
          <Button icon="stop" look="primary" onClick={onStop}>
            Stop
          </Button>
        ) : (
          <Button icon="send" look="primary" submit disabled={!ready}>
            Send
          </Button>
        )}
      </div>
    </form>
  );
}

function uploadOf(info: Attachment): Upload {
  return { key: info.mediaId, name: info.fileName ?? info.mediaId, size: info.size, info, error: undefined };
}

/** Focuses the field, except on a phone, where the keyboard would cover the page. */
function focusWithoutTouch(field: HTMLTextAreaElement | null): void {
  if (matchMedia('(hover: hover)').matches) field?.focus();
}
