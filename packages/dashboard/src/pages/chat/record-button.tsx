import { t, tx } from '../../language.ts';
import { useEffect, useRef, useState } from 'react';
import { useSession } from '../../data/context.ts';
import { useAction } from '../../data/use-action.ts';
import { Elapsed } from '../../ui/elapsed.tsx';
import { Failure, IconButton } from '../../ui/parts.tsx';

/** A longer recording stops on its own; its text is added like that of any other. */
const maxMs = 10 * 60_000;

/** Records speech and returns its text; nothing where the browser cannot record. */
export function RecordButton({
  agentId,
  disabled,
  onText,
}: {
  readonly agentId: string;
  readonly disabled: boolean;
  readonly onText: (text: string) => void;
}) {
  const { client } = useSession();
  const { busy, error, run } = useAction();
  const [startedAtMs, setStartedAtMs] = useState<number>();
  const recording = useRef<MediaRecorder>(undefined);
  useEffect(
    () => () => {
      // Nobody is left who reads the text, when another page is opened.
      if (recording.current !== undefined) recording.current.onstop = null;
      releaseMicrophone(recording.current);
    },
    [],
  );
  if (!canRecord()) return null;

  const start = async (): Promise<void> => {
    const started = await startRecording((recorded) => {
      setStartedAtMs(undefined);
      run(() => transcribe(recorded));
    });
    recording.current = started.recorder;
    setStartedAtMs(started.atMs);
  };

  const transcribe = async (recorded: Blob): Promise<void> => {
    const audio = await toBase64(recorded);
    const answer = await client.call('audio.transcribe', { audio, agentId }, { timeoutMs: 180_000 });
    if ('error' in answer) throw new Error(answer.error);
    onText(answer.text);
  };

  return (
    <>
      {startedAtMs === undefined ? (
        <IconButton
          icon="microphone"
          label={busy ? t('Converting the recording to text') : t('Record')}
          disabled={disabled || busy}
          onClick={() => run(start)}
        />
      ) : (
        <>
          <IconButton icon="stop" label={t('Stop recording')} onClick={() => recording.current?.stop()} />
          <span className="hint" role="status">
            {tx('Recording {time}', { time: <Elapsed fromMs={startedAtMs} toMs={undefined} /> })}
          </span>
        </>
      )}
      {error !== undefined && (
        <div className="composer-note">
          <Failure error={error} />
        </div>
      )}
    </>
  );
}

async function startRecording(onEnd: (recorded: Blob) => void): Promise<{ readonly recorder: MediaRecorder; readonly atMs: number }> {
  const stream = await navigator.mediaDevices.getUserMedia({ audio: true }).catch((failure: unknown) => {
    throw new Error(`The microphone cannot be used: ${failure instanceof Error ? failure.message : String(failure)}`);
  });
  const parts: Blob[] = [];
  const recorder = new MediaRecorder(stream);
  recorder.ondataavailable = ({ data }) => parts.push(data);
  const timer = setTimeout(() => recorder.stop(), maxMs);
  recorder.onstop = () => {
    clearTimeout(timer);
    releaseMicrophone(recorder);
    onEnd(new Blob(parts));
  };
  recorder.start();
  return { recorder, atMs: Date.now() };
}

const canRecord = (): boolean => 'MediaRecorder' in globalThis && 'mediaDevices' in navigator;

function releaseMicrophone(recorder: MediaRecorder | undefined): void {
  for (const track of recorder?.stream.getTracks() ?? []) track.stop();
}

async function toBase64(blob: Blob): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const reader = new FileReader();
  reader.onload = () => resolve(String(reader.result).replace(/^[^,]*,/, ''));
  reader.onerror = () => reject(reader.error ?? new Error('The recording cannot be read'));
  reader.readAsDataURL(blob);
  return promise;
}
