import { t } from '../../language.ts';
import { bytes } from '../../data/format.ts';
import { useAction } from '../../data/use-action.ts';
import { Icon } from '../../ui/icon.tsx';
import { Button, Failure } from '../../ui/parts.tsx';
import { useBlobAddress } from './use-blob.ts';

/** Types that are shown inline; all others are downloads. SVG is excluded because it can contain scripts. */
const drawn = /^image\/(png|jpeg|gif|webp|avif)$/;
const heard = /^audio\/[a-z0-9.+-]+$/;
const maxInlineBytes = 8 * 1024 * 1024;
/** How long a file that was opened stays available to its tab. */
const keptMs = 60_000;

export interface ShownFile {
  /** Changes when the bytes do. */
  readonly key: string;
  readonly name: string;
  readonly contentType: string;
  readonly size: number;
  /** An image element can't send the token, and a URL must not contain it. */
  readonly load: (signal?: AbortSignal) => Promise<Blob>;
}

/** Shows an image or a player for audio; offers any other file for opening or saving. */
export function FileView({ file, children }: { readonly file: ShownFile; readonly children?: React.ReactNode }) {
  const isInline = (drawn.test(file.contentType) || heard.test(file.contentType)) && file.size <= maxInlineBytes;
  const { address, failed } = useBlobAddress(isInline ? file.load : undefined, file.key);
  if (!isInline)
    return (
      <div className="attachment">
        <FileButton file={file} />
        <span className="hint">{bytes(file.size)}</span>
        {children}
      </div>
    );
  return (
    <figure className="attachment">
      {failed !== undefined && <span className="hint">{t('Failed to load this file.')}</span>}
      {failed === undefined && address === undefined && <Icon name="file" />}
      {address !== undefined &&
        (heard.test(file.contentType) ? (
          <audio controls preload="metadata" src={address} aria-label={file.name} />
        ) : (
          <img src={address} alt={file.name} />
        ))}
      <figcaption>
        {file.name} <span className="hint">{bytes(file.size)}</span>
      </figcaption>
    </figure>
  );
}

/** Opens a PDF in a new tab, whose viewer keeps it apart from this page, and saves any other file. */
function FileButton({ file: { name, contentType, load } }: { readonly file: ShownFile }) {
  const { busy, error, run } = useAction();
  const isPdf = contentType === 'application/pdf';
  const open = async (): Promise<void> => {
    const content = await (await load()).arrayBuffer();
    // Only with this type: a page with scripts would have the address of the dashboard.
    const address = URL.createObjectURL(new Blob([content], { type: isPdf ? 'application/pdf' : 'application/octet-stream' }));
    const link = document.createElement('a');
    link.href = address;
    if (isPdf) link.target = '_blank';
    else link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), keptMs);
  };
  return (
    <>
      <Button small icon={isPdf ? 'file' : 'download'} disabled={busy} onClick={() => run(open)}>
        {isPdf ? t('Open') : t('Save')} {name}
      </Button>
      {error !== undefined && <Failure error={error} />}
    </>
  );
}
