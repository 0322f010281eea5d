# Packages of Debian 13, unpacked and run without being installed: what toolchain.sh and install-c.sh share.
# Sourced by them, once `die` is defined.
#
# The packages come from the mirror that this machine's apt is set up with; CAPSULE_DEBIAN_MIRROR names another. apt checks their signatures.

SUITE=trixie
KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

# The mirror of this machine's own Debian release, from either format of apt's source lists.
find_mirror() {
  if [ -n "${CAPSULE_DEBIAN_MIRROR:-}" ]; then
    echo "$CAPSULE_DEBIAN_MIRROR"
    return
  fi
  local release
  release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  # Formats: "URIs: U" before "Suites: R ..." in .sources, "deb [options] U R ..." in .list.
  find /etc/apt -name '*.sources' -exec cat {} + -o -name '*.list' -exec cat {} + | awk -v release="$release" '
    /^URIs:/   { uri = $2 }
    /^Suites:/ { for (i = 2; i <= NF; i++) if ($i == release && !found) found = uri }
    /^deb /    { sub(/\[[^]]*\] */, ""); if ($3 == release && !found) found = $2 }
    END        { print found }'
}

# An apt of its own below $1, which neither reads nor changes the system's package state.
make_apt() {
  local apt=$1 mirror=$2
  mkdir -p "$apt"/{lists/partial,cache/archives/partial,state,deb}
  : > "$apt/state/status"
  echo "deb [signed-by=$KEYRING] $mirror $SUITE main" > "$apt/sources.list"
  cat > "$apt/apt.conf" <<CONF
Dir::Etc::sourcelist "$apt/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::State "$apt/state";
Dir::State::lists "$apt/lists";
Dir::State::status "$apt/state/status";
Dir::Cache "$apt/cache";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
CONF
}

# The one dependency of package $1 whose name matches $2.
dependency() {
  apt-cache depends "$1" | awk -v pattern="$2" '$2 ~ pattern { name = $2 } END { print name }'
}

# Unpacks into $1/root the packages that the command $2 names on its output, with apt set up for it.
unpack_packages() {
  local dir=$1 names=$2 mirror package
  command -v apt-get > /dev/null || die "it needs apt-get"
  [ -e "$KEYRING" ] || die "it needs Debian's archive keys ($KEYRING)"
  mirror=$(find_mirror)
  [ -n "$mirror" ] || die "no Debian mirror in apt's source lists; CAPSULE_DEBIAN_MIRROR names one"
  rm -rf "$dir/apt" "$dir/root" && mkdir -p "$dir/root"
  make_apt "$dir/apt" "$mirror"
  export APT_CONFIG=$dir/apt/apt.conf
  apt-get update -qq
  $names > "$dir/apt/names"
  (cd "$dir/apt/deb" && xargs apt-get download -qq < "$dir/apt/names")
  unset APT_CONFIG
  (cd "$dir/apt/deb" && sha256sum ./*.deb) > "$dir/packages.sha256"
  for package in "$dir"/apt/deb/*.deb; do dpkg -x "$package" "$dir/root"; done
  rm -rf "$dir/apt" "$dir/root/usr/share"
}
