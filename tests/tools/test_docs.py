"""README.md and docs/: what they say of files, links and configurations holds."""
import glob
import os
import re
import subprocess
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
CUTTLE = os.environ["CUTTLE"]
COLUMNS = 110
SCREENS = 2 * 60  # lines
FOLDERS = "base|http|cache|dns|conf|proxy|tests|tools|docs|dist"

# A path from the root, with its last dot left to the sentence; and a file's name alone.
PATH = re.compile(r"(?<![\w./-])(?:%s)/[\w./*-]*[\w*]" % FOLDERS)
NAME = re.compile(r"(?<![\w./*-])\w+\.(?:c|h|def|py)\b")
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def pages():
    return ["README.md"] + sorted(os.path.relpath(path, ROOT)
                                  for path in glob.glob(os.path.join(ROOT, "docs", "*.md")))


def anchors(path):
    """Of the headings, as web pages make them."""
    headings = re.findall(r"(?m)^#+ (.*)$", read(path))
    return {re.sub(r"[^\w -]", "", text.lower()).replace(" ", "-") for text in headings}


def files_of_the_tree():
    for folder in FOLDERS.split("|"):
        for _, _, names in os.walk(os.path.join(ROOT, folder)):
            yield from names


def block_below(heading):
    """The indented lines of README.md that follow it, as they are in a file."""
    below = read("README.md").split("\n## %s\n" % heading)[1].lstrip("\n")
    lines = re.match(r"(?:(?: {4}.*)?\n)+", below).group().split("\n")
    return "".join(line[4:] + "\n" for line in lines).strip("\n") + "\n"


class Docs(unittest.TestCase):
    def test_lines_fit_a_window(self):
        for page in pages():
            for number, line in enumerate(read(page).split("\n"), 1):
                self.assertLessEqual(len(line), COLUMNS, "%s:%d" % (page, number))

    def test_the_readme_fits_two_screens(self):
        self.assertLessEqual(read("README.md").count("\n"), SCREENS)

    def test_links_lead_somewhere(self):
        for page in pages():
            for path, anchor in LINK.findall(read(page)):
                if re.match(r"\w+:", path):
                    continue
                target = os.path.join(os.path.dirname(page), path) if path else page
                self.assertTrue(os.path.exists(os.path.join(ROOT, target)), (page, path))
                if anchor:
                    self.assertIn(anchor, anchors(target), (page, path))

    def test_each_page_is_linked_from_the_readme(self):
        linked = {path for path, _ in LINK.findall(read("README.md"))}
        self.assertEqual(set(pages()) - linked, {"README.md"})

    def test_the_files_that_are_named_exist(self):
        names = set(files_of_the_tree())
        for page in pages():
            text = read(page)
            for path in PATH.findall(text):
                self.assertTrue(glob.glob(os.path.join(ROOT, path)), (page, path))
            for name in NAME.findall(text):
                self.assertIn(name, names, page)

    def test_the_site_s_configuration_is_taken_without_a_word(self):
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as f:
            f.write(block_below("A configuration for a site"))
            f.flush()
            done = subprocess.run([CUTTLE, "-k", "parse", "-f", f.name], capture_output=True,
                                  text=True, timeout=20)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_the_site_has_a_store_on_disk(self):
        self.assertIn("\ncache_dir ", block_below("A configuration for a site"))


if __name__ == "__main__":
    unittest.main()
