/** What one chunk holds: everything that shows files. */
export { AttachmentList } from './attachment-list.tsx';
export { MadeFiles, MadeFilesOfTurn } from './made-files.tsx';
export { MediaPage } from './media-page.tsx';
export { SpeakButton } from './speak-button.tsx';
