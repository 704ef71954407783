import { t, tx } from '../language.ts';
import { type RefObject, use, useCallback, useEffect, useRef, useState } from 'react';
import { artifactKind, namedFile } from '../data/artifacts.ts';
import { CopyButton } from '../ui/copy-button.tsx';
import { Button } from '../ui/parts.tsx';
import { saveBlob } from '../ui/save-json.ts';
import { ArtifactContext } from './artifact-context.ts';
import { Diagram } from './diagram.tsx';
import type { Piece } from './highlight.ts';

/** Code whose end has not arrived is coloured when nothing was added to it for this time. */
const quietMs = 1_000;

const fileTypes: Readonly<Record<string, string>> = {
  bash: 'sh',
  console: 'sh',
  csharp: 'cs',
  dockerfile: t('Dockerfile'),
  javascript: 'js',
  kotlin: 'kt',
  makefile: 'mk',
  markdown: 'md',
  mermaid: 'mmd',
  perl: 'pl',
  plaintext: 'txt',
  powershell: 'ps1',
  python: 'py',
  ruby: 'rb',
  rust: 'rs',
  shell: 'sh',
  text: 'txt',
  typescript: 'ts',
};

/** Returns the name of a file for a code block: its own, or one for the language. */
function fileNameOf(info: string | undefined): string {
  const named = namedFile(info);
  if (named !== undefined) return named;
  const [language = ''] = (info ?? '').trim().split(/\s+/);
  const name = language.toLowerCase();
  const type = Object.hasOwn(fileTypes, name) ? fileTypes[name] : /^[a-z][a-z0-9]{0,7}$/.test(name) ? name : 'txt';
  return `code.${type}`;
}

/** Code with its colours, which arrive when the block is complete and in view; a diagram instead of its source. */
export function CodeBlock({ info, text, complete }: { readonly info: string | undefined; readonly text: string; readonly complete: boolean }) {
  const name = /^[\w+#.-]{1,24}/.exec(info ?? '')?.[0];
  const isDiagram = name === 'mermaid' && complete;
  const [showsCode, setShowsCode] = useState(false);
  const [failure, setFailure] = useState<string>();
  const onFailed = useCallback((reason: string) => setFailure(reason), []);
  const figure = useRef<HTMLElement>(null);
  const inView = useInView(figure);
  const pieces = usePieces(text, name, complete, inView);
  const openArtifact = use(ArtifactContext);
  const drawn = isDiagram && !showsCode && failure === undefined;
  return (
    <figure className="code" ref={figure}>
      <figcaption>
        <span>{namedFile(info) ?? name ?? t('text')}</span>
        <span className="code-actions">
          {isDiagram && failure === undefined && (
            <Button small look="quiet" icon={showsCode ? 'graph' : 'code'} onClick={() => setShowsCode(!showsCode)}>
              {showsCode ? t('Diagram') : t('Source')}
            </Button>
          )}
          {openArtifact !== undefined && complete && artifactKind(info, text) !== undefined && (
            <Button small look="quiet" icon="screen" onClick={() => openArtifact(info, text)}>
              {t('Open')}
            </Button>
          )}
          <Button
            small
            look="quiet"
            icon="download"
            label={t('Save code as a file')}
            onClick={() => saveBlob(fileNameOf(info), new Blob([`${text}\n`], { type: 'text/plain' }))}
          >
            {t('Save')}
          </Button>
          <CopyButton text={text} label={t('Copy code')} />
        </span>
      </figcaption>
      {failure !== undefined && <p className="hint code-note">{tx("The diagram can't be drawn: {failure}", { failure })}</p>}
      {drawn && inView ? (
        <div className="diagram-scroll" tabIndex={0} role="region" aria-label={t('Diagram')}>
          <Diagram code={text} onFailed={onFailed} />
        </div>
      ) : (
        <pre tabIndex={0} dir="ltr" aria-label={name === undefined ? t('Code') : t('Code in {name}', { name })}>
          <code>
            {pieces === undefined
              ? text
              : pieces.map(({ kind, text: part }, at) =>
                  kind === undefined ? (
                    part
                  ) : (
                    <span key={at} className={`hl-${kind}`}>
                      {part}
                    </span>
                  ),
                )}
          </code>
        </pre>
      )}
    </figure>
  );
}

/** Returns the coloured parts of a text once they are known; those of an earlier text are not shown. */
function usePieces(text: string, language: string | undefined, complete: boolean, inView: boolean): readonly Piece[] | undefined {
  const [found, setFound] = useState<{ readonly text: string; readonly pieces: readonly Piece[] | undefined }>();
  useEffect(() => {
    if (language === undefined || !inView) return undefined;
    let isWanted = true;
    const timer = setTimeout(
      () => {
        import('./highlight.ts')
          .then(({ highlight }) => highlight(text, language))
          .then((pieces) => {
            if (isWanted) setFound({ text, pieces });
          })
          .catch(() => {
            // A new build replaced the file: the code stays plain.
          });
      },
      complete ? 0 : quietMs,
    );
    return () => {
      isWanted = false;
      clearTimeout(timer);
    };
  }, [text, language, complete, inView]);
  return found?.text === text ? found.pieces : undefined;
}

/** Whether an element has been near the visible part of the page. */
function useInView(element: RefObject<HTMLElement | null>): boolean {
  const [inView, setInView] = useState(false);
  useEffect(() => {
    const observer = new IntersectionObserver(
      (entries) => {
        if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
        setInView(true);
        observer.disconnect();
      },
      { rootMargin: '400px' },
    );
    if (element.current !== null) observer.observe(element.current);
    return () => observer.disconnect();
  }, [element]);
  return inView;
}
