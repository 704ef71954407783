import { t, tx } from '../../language.ts';
import { useEffect, useRef, useState } from 'react';
import { type Artifact, artifactOf } from '../../data/artifacts.ts';
import type { ChatMessage } from '../../data/chat-thread.ts';
import { Markdown } from '../../markdown/markdown.tsx';
import { ContentFrame } from '../../ui/content-frame.tsx';
import { CopyButton } from '../../ui/copy-button.tsx';
import { Button, IconButton } from '../../ui/parts.tsx';
import { saveBlob } from '../../ui/save-json.ts';

const types: Readonly<Record<Artifact['kind'], readonly [type: string, mime: string]>> = {
  html: ['html', 'text/html'],
  svg: ['svg', 'image/svg+xml'],
  markdown: ['md', 'text/markdown'],
};

export interface OpenArtifact {
  readonly info: string | undefined;
  readonly text: string;
}

/** Shows a page, picture or document of an answer next to the conversation, with its versions. */
export function ArtifactPanel({
  open,
  messages,
  onShow,
  onClose,
}: {
  readonly open: OpenArtifact;
  readonly messages: readonly ChatMessage[];
  readonly onShow: (text: string) => void;
  readonly onClose: () => void;
}) {
  const [showsCode, setShowsCode] = useState(false);
  const panel = useRef<HTMLElement>(null);
  useEffect(() => panel.current?.focus(), []);
  const { kind, title, versions } = artifactOf(open.info, open.text, messages);
  const at = versions.lastIndexOf(open.text);
  const [type, mime] = types[kind];
  const show = (next: number): void => {
    const text = versions[next];
    if (text !== undefined) onShow(text);
  };
  return (
    <aside
      className="artifact"
      aria-label={t('Artifact {title}', { title })}
      ref={panel}
      tabIndex={-1}
      onKeyDown={(event) => {
        if (event.key === 'Escape') onClose();
      }}
    >
      <header>
        <h2 dir="auto">{title}</h2>
        {versions.length > 1 && (
          <span className="branch-switch" role="group" aria-label={t('Versions')}>
            <IconButton icon="previous" label={t('Previous version')} disabled={at === 0} onClick={() => show(at - 1)} />
            <span className="hint">{tx('{at} of {versions}', { at: at + 1, versions: versions.length })}</span>
            <IconButton icon="next" label={t('Next version')} disabled={at === versions.length - 1} onClick={() => show(at + 1)} />
          </span>
        )}
        <span className="grow" />
        <Button small look="quiet" icon={showsCode ? 'screen' : 'code'} onClick={() => setShowsCode(!showsCode)}>
          {showsCode ? t('Preview') : t('Source')}
        </Button>
        <Button
          small
          look="quiet"
          icon="download"
          label={t('Save the artifact as a file')}
          onClick={() => saveBlob(title.endsWith(`.${type}`) ? title : `${fileName(title)}.${type}`, new Blob([open.text], { type: mime }))}
        >
          {t('Save')}
        </Button>
        <CopyButton text={open.text} label={t('Copy')} />
        <IconButton icon="close" label={t('Close the artifact')} onClick={onClose} />
      </header>
      {showsCode ? (
        <pre className="artifact-source" tabIndex={0} role="region" aria-label={t('Source')}>
          {open.text}
        </pre>
      ) : kind === 'markdown' ? (
        <div className="artifact-document" tabIndex={0} role="region" aria-label={t('Document')}>
          <Markdown text={open.text} />
        </div>
      ) : (
        <ContentFrame key={open.text} title={title} html={kind === 'html' ? open.text : picturePage(open.text)} />
      )}
    </aside>
  );
}

function fileName(title: string): string {
  return (
    title
      .replaceAll(/[^\p{L}\p{N}]+/gu, '-')
      .replaceAll(/^-|-$/g, '')
      .slice(0, 60) || 'artifact'
  );
}

function picturePage(svg: string): string {
  const style = 'html,body{height:100%;margin:0}body{display:grid;place-items:center}svg{max-width:100%;max-height:100vh}';
  return `<!doctype html><meta charset="utf-8"><style>${style}</style>${svg.replace(/^\s*<\?xml[^>]*>/, '')}`;
}
