import { t } from '../../language.ts';
import { type DragEvent, type KeyboardEvent, useEffect, useEffectEvent, useId, useRef, useState } from 'react';
import type { Attachment } from '../../data/chat-thread.ts';
import type { Unsent } from '../../data/unsent.ts';
import { Button } from '../../ui/parts.tsx';
import { Completion, type CompletionHandle } from './completion.tsx';
import type { ChatCommand } from './chat-commands.ts';
import { FilePicker } from './file-picker.tsx';
import { RecordButton } from './record-button.tsx';
import { UploadList } from './upload-list.tsx';
import { attachmentsOf, useUploads } from './use-uploads.ts';

interface ComposerProps {
  /** The agent that pays for speech that is converted to text. */
  readonly agentId: string;
  /** The unsent message from before another page was opened. */
  readonly initial: Unsent;
  readonly running: boolean;
  readonly disabled: boolean;
  /** What `/name` runs in the chat itself. */
  readonly commands: readonly ChatCommand[];
  /** Called with the unsent message, to keep it. */
  readonly onChange: (unsent: Unsent) => void;
  readonly onSend: (text: string, attachments: readonly Attachment[]) => void;
  readonly onStop: () => void;
}

/** The message field: Enter sends, or queues while an answer is written; Shift+Enter inserts a line break; files are added by button, drop or paste. */
export function Composer({ agentId, initial, running, disabled, commands, onChange, onSend, onStop }: ComposerProps) {
  const [text, setText] = useState(initial.text);
  const uploads = useUploads(initial.attachments);
  const area = useRef<HTMLTextAreaElement>(null);
  const form = useRef<HTMLFormElement>(null);
  const completion = useRef<CompletionHandle>(null);
  const listId = useId();
  const [completing, setCompleting] = useState<string>();
  const drop = useFileDrop(uploads.add);
  const isReady = text.trim() !== '' && uploads.isSettled && !disabled;

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
    keep({ text, attachments: attachmentsOf(uploads.list) });
  }, [text, uploads.list]);

  function send(): void {
    if (!isReady) return;
    const [, name, rest = ''] = /^\/(\S+)\s*([^]*)$/.exec(text.trim()) ?? [];
    const command = commands.find((one) => one.name === name);
    if (command !== undefined) {
      // Before the command, which may open another conversation.
      setText('');
      return command.run(rest.trim());
    }
    onSend(text.trim(), attachmentsOf(uploads.list));
    setText('');
    uploads.clear();
  }

  return (
    <form
      ref={form}
      className={drop.isOver ? 'composer over' : 'composer'}
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
      {...drop.handlers}
    >
      <Completion
        ref={completion}
        listId={listId}
        field={area}
        text={text}
        agentId={agentId}
        commands={commands}
        onComplete={setText}
        onActive={setCompleting}
      />
      <UploadList uploads={uploads} />
      <div className="composer-row">
        <FilePicker disabled={disabled || uploads.isFull} onPick={uploads.add} />
        <RecordButton
          agentId={agentId}
          disabled={disabled}
          onText={(spoken) => setText((before) => [before.trimEnd(), spoken].filter(Boolean).join(' '))}
        />
        <textarea
          ref={area}
          aria-label={t('Message')}
          data-focus-home={hasKeyboard() || undefined}
          dir="auto"
          placeholder={running ? t('Write the next message') : t('Write a message')}
          aria-autocomplete="list"
          aria-controls={completing === undefined ? undefined : listId}
          aria-activedescendant={completing}
          rows={1}
          value={text}
          disabled={disabled}
          onChange={(event) => setText(event.target.value)}
          onPaste={(event) => {
            if (event.clipboardData.files.length === 0) return;
            event.preventDefault();
            uploads.add([...event.clipboardData.files]);
          }}
          onSelect={() => completion.current?.refresh()}
          onBlur={() => completion.current?.close()}
          onKeyDown={(event) => {
            if (completion.current?.onKey(event) === true) return;
            if (event.key === 'Escape' && running && !event.nativeEvent.isComposing) {
              event.preventDefault();
              return onStop();
            }
            if (!isSendKey(event)) return;
            event.preventDefault();
            send();
          }}
        />
        {running && text.trim() !== '' && (
          <Button icon="clock" submit disabled={!isReady}>
            {t('Queue')}
          </Button>
        )}
        {running ? (
          <Button icon="stop" look="primary" onClick={onStop}>
            {t('Stop')}
          </Button>
        ) : (
          <Button icon="send" look="primary" submit disabled={!isReady}>
            {t('Send')}
          </Button>
        )}
      </div>
    </form>
  );
}

/** Accepts files that are dragged onto an element. */
function useFileDrop(onFiles: (files: readonly File[]) => void) {
  const [isOver, setOver] = useState(false);
  return {
    isOver,
    handlers: {
      onDragOver(event: DragEvent) {
        if (!event.dataTransfer.types.includes('Files')) return;
        event.preventDefault();
        setOver(true);
      },
      onDragLeave: () => setOver(false),
      onDrop(event: DragEvent) {
        setOver(false);
        if (event.dataTransfer.files.length === 0) return;
        event.preventDefault();
        onFiles([...event.dataTransfer.files]);
      },
    },
  };
}

/** True for Enter alone. Enter also confirms an IME composition; it must not send then. */
function isSendKey({ key, shiftKey, nativeEvent }: KeyboardEvent): boolean {
  return key === 'Enter' && !shiftKey && !nativeEvent.isComposing;
}

/** Focuses the field, except on a phone, where the keyboard would cover the page. */
function focusWithoutTouch(field: HTMLTextAreaElement | null): void {
  if (hasKeyboard()) field?.focus();
}

const hasKeyboard = (): boolean => matchMedia('(hover: hover)').matches;
