-- Read at each start. The database is reached by the site's own network only.
CREATE DATABASE IF NOT EXISTS wordpress CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_520_ci;
CREATE DATABASE IF NOT EXISTS forum CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_520_ci;
CREATE USER IF NOT EXISTS wordpress@'%' IDENTIFIED BY 'wordpress';
CREATE USER IF NOT EXISTS forum@'%' IDENTIFIED BY 'forum';
GRANT ALL ON wordpress.* TO wordpress@'%';
GRANT ALL ON forum.* TO forum@'%';
